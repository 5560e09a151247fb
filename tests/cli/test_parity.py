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
