"""Command ``parity``: two implementations on one line."""

from mnemoscope.cli.terminal import FAILURE


def test_two_networks_that_agree(call_json):
    assert call_json("parity", "gru", "gru", "--hidden", "4")["parts"] == 0


def test_networks_that_differ_end_with_a_failure(call, tmp_path):
    path = tmp_path / "cells.py"
    path.write_text(
        "import mnemoscope as ms\n\n\n"
        "class Other(ms.nn.GRU):\n"
        "    def run(self, x, state, lengths):\n"
        "        return super().run(2 * x, state, lengths)\n"
    )
    found = call("parity", "gru", f"{path}:Other", "--hidden", "4")
    assert found.exit_code == FAILURE
    assert "from step 1 on" in found.output


def test_mistakes_are_one_line(mistake, tmp_path):
    bad = tmp_path / "map.json"
    bad.write_text("[]")
    assert "--map must be an object" in mistake("parity", "gru", "gru", "--map", str(bad))
    assert "left over in the first" in mistake("parity", "lstm", "gru", "--hidden", "4")


def test_the_gate_is_named_for_two_classes_of_a_file(call, tmp_path):
    path = tmp_path / "cells.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\n"
        "class Mine(nn.Module):\n"
        "    bias = 0.0\n\n"
        "    def __init__(self, input_size=2, hidden_size=4):\n"
        "        super().__init__()\n"
        "        self.hidden_size = hidden_size\n"
        "        self.W_f, self.W_c = (nn.Linear(input_size, hidden_size) for _ in range(2))\n"
        "        self.U_f, self.U_c = (nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(2))\n\n"
        "    def forward(self, x, h=None):\n"
        "        h = x.new_zeros(len(x), self.hidden_size) if h is None else h\n"
        "        f = torch.sigmoid(self.W_f(x) + self.U_f(h) + self.bias)\n"
        "        h = f * h + (1 - f) * torch.tanh(self.W_c(x) + self.U_c(h))\n"
        "        return h, h\n\n\n"
        "class Theirs(Mine):\n"
        "    bias = 1.0\n"
    )
    found = call("parity", f"{path}:Mine", f"{path}:Theirs", "--hidden", "4")
    assert found.exit_code == FAILURE
    assert "in f: silenced, nothing differs" in " ".join(found.output.split())
