"""Commands of measures that take something else than a network: modules that keep their state, runs."""


def test_a_module_that_keeps_its_state_is_listed_though_nothing_adapts_it(call_json, tmp_path):
    (tmp_path / "keeps.py").write_text(
        "from torch import nn\n\n\n"
        "class Keeps(nn.Module):\n"
        "    def __init__(self, input_size, hidden_size):\n"
        "        super().__init__()\n"
        "        self.input_size, self.rnn, self.last = input_size, nn.RNN(input_size, hidden_size), None\n\n"
        "    def forward(self, x):  # (batch, time, input)\n"
        "        same = self.last is not None and self.last.shape[1] == len(x)\n"
        "        y, self.last = self.rnn(x.transpose(0, 1), self.last if same else None)\n"
        "        return y.transpose(0, 1)\n"
    )
    found = call_json("measure", "state-inventory", f"{tmp_path / 'keeps.py'}:Keeps", "--hidden", "3")
    assert (found["names"], found["outside"], found["read"]) == (["last"], [True], [3])
