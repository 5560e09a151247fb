"""Commands and lines of Python that compute a number again."""

import pytest
from torch import nn

import mnemoscope as ms
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.section import Call
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import python_call, spell


class Mine(nn.GRU):
    pass


FISHER = Call("network-fisher", {"trajectories": 2, "longest": 20, "washout": 5})


@pytest.mark.parametrize(
    ("target", "call", "said"),
    [
        (
            NetworkSpec("rnn"),
            Call("spectrum", {"horizon": 60}),
            "mnemoscope measure spectrum rnn --hidden 64 --horizon 60 --seed 2",
        ),
        (
            NetworkSpec("rnn", hidden_size=5, num_layers=2, nonlinearity="relu"),
            Call("memory-capacity", {"threshold": True}),
            "mnemoscope measure memory-capacity rnn --hidden 5 --layers 2 --set nonlinearity=relu --threshold --seed 2",
        ),
        (
            NetworkSpec("my file.py:Mine", hidden_size=5),
            Call("separation-rank", {"horizon": 4}, 3),
            "mnemoscope measure separation-rank 'my file.py:Mine' --hidden 5 --input-size 3 --horizon 4 --seed 2",
        ),
        (
            NetworkSpec("x.safetensors"),
            Call("resources", {"lengths": (8, 16, 32)}),
            "mnemoscope measure resources x.safetensors --lengths 8,16,32 --seed 2",
        ),
        (NetworkSpec("x.safetensors"), Call("spectrum"), "mnemoscope measure spectrum x.safetensors"),
    ],
)
def test_commands(target, call, said):
    assert spell(target, call, 2) == said


def test_lines_of_python_compute_the_same_number():
    module = Mine(1, 3)
    line = spell(NetworkSpec(module), FISHER, 2)
    assert eval(line, {"ms": ms, "module": module}).total == FISHER(module, 2).total
    drawn = NetworkSpec(Mine, hidden_size=3)
    line = spell(drawn, FISHER, 2)
    assert eval(line, {"ms": ms, "Mine": Mine}).total == FISHER(drawn.replace(seed=2).build(), 2).total


def test_the_line_that_makes_a_profile():
    settings = Settings(quick=True, seeds=2)
    one = NetworkSpec("cprnn", hidden_size=3, rank=2)
    assert python_call([one], settings, False) == "ms.profile('cprnn', hidden_size=3, rank=2, quick=True, seeds=2)"
    several = [NetworkSpec("rnn"), NetworkSpec(Mine(1, 2)), NetworkSpec(Mine)]
    assert python_call(several, Settings(), True) == "ms.compare('rnn', module, Mine, fresh=True)"
