"""What a profile is of: names, files, classes and modules, how they are called and told apart."""

from pathlib import Path

import pytest
from torch import nn

import mnemoscope as ms
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Call, Context
from mnemoscope.profiles.runner import Settings
from mnemoscope.profiles.subject import facts_of, fingerprint, network_words, python_call, spell


class Mine(nn.GRU):
    pass


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cells.py"
    path.write_text("from torch import nn\nclass My(nn.GRUCell):\n    pass\n")
    return path


def test_names_files_classes_and_modules(file):
    ms.nn.save(ms.nn.RNN(2, 3), "a b.safetensors")
    table = [
        (NetworkSpec("rnn"), "rnn", False, "rnn --hidden 64"),
        (
            NetworkSpec("rnn", input_size=2, hidden_size=5, nonlinearity="relu"),
            "rnn nonlinearity=relu",
            False,
            None,
        ),
        (NetworkSpec("cells.py:My", hidden_size=5), "My", False, "cells.py:My --hidden 5"),
        (NetworkSpec("a b.safetensors"), "a b", True, "'a b.safetensors'"),
        (NetworkSpec("rnn", parameters=99, count="all"), "rnn", False, "rnn --parameters 99 --count all"),
        (NetworkSpec(Mine, hidden_size=5), "Mine", False, ""),
        (NetworkSpec(Mine(2, 3)), "Mine", True, ""),
        (NetworkSpec(ms.nn.LSTM(2, 3)), "lstm", True, ""),
        (NetworkSpec(ms.adapt(Mine(2, 3))), "Mine", True, ""),
    ]
    for spec, label, trained, words in table:
        assert (spec.label, spec.trained) == (label, trained)
        assert spec.build().kind == "recurrent"
        if words is not None:
            assert (network_words(spec) or "") == words
    assert network_words(table[1][0]) == "rnn --hidden 5 --input-size 2 --set nonlinearity=relu"
    assert network_words(table[0][0], 3) == "rnn --hidden 64 --input-size 3"


def test_facts():
    found = facts_of(NetworkSpec("lstm", hidden_size=5, input_size=2), ms.nn.LSTM(2, 5))
    assert found.parameters == 4 * 5 * (5 + 2) + 8 * 5  # torch has two biases
    assert (found.state_size, found.kind, found.name, found.class_name) == (10, "recurrent", "lstm", "LSTM")


def test_the_fingerprint_knows_weights_code_and_settings(file):
    spec = NetworkSpec("cells.py:My", hidden_size=3)
    one = fingerprint(spec, spec.build(), quick=False)
    assert fingerprint(spec, spec.build(), quick=False) == one
    assert fingerprint(spec, spec.build(), quick=True) != one
    assert fingerprint(spec, spec.replace(seed=1).build(), quick=False) != one
    network = spec.build()
    file.write_text(file.read_text() + "# changed\n")
    assert fingerprint(spec, network, quick=False) != one


FISHER = Call("network-fisher", {"trajectories": 2, "longest": 20, "washout": 5})


@pytest.mark.parametrize(
    ("spec", "call", "said"),
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
def test_commands(spec, call, said):
    assert spell(spec, call, 2) == said


def test_lines_of_python_compute_the_same_number():
    module = Mine(1, 3)
    line = spell(NetworkSpec(module), FISHER, 2)
    assert eval(line, {"ms": ms, "module": module}).total == FISHER(module, Context(seed=2)).total
    drawn = NetworkSpec(Mine, hidden_size=3)
    line = spell(drawn, FISHER, 2)
    assert eval(line, {"ms": ms, "Mine": Mine}).total == FISHER(drawn.replace(seed=2).build(), Context(seed=2)).total


def test_the_line_that_makes_a_profile():
    settings = Settings(quick=True, seeds=2, bounded=True)
    one = NetworkSpec("cprnn", hidden_size=3, rank=2)
    assert python_call([one], settings, False) == "ms.profile('cprnn', hidden_size=3, rank=2, quick=True, seeds=2)"
    more = Settings(seed=3, budget=20.0, train_minutes=2.0, bounded=True)
    given = "seed=3, budget=20.0, train_minutes=2.0, html='a.html'"
    assert python_call([NetworkSpec("rnn")], more, False, Path("a.html")) == f"ms.profile('rnn', {given})"
    assert python_call([NetworkSpec("rnn")], Settings(), False) == "ms.profile('rnn', full=True)"
    several = [NetworkSpec("rnn"), NetworkSpec(Mine(1, 2)), NetworkSpec(Mine)]
    assert python_call(several, Settings(bounded=True), True) == "ms.compare('rnn', module, Mine, fresh=True)"
    equal = [NetworkSpec(name, parameters=99) for name in ("rnn", "gru")]
    assert python_call(equal, Settings(bounded=True), False) == "ms.compare('rnn', 'gru', parameters=99)"
    other = [NetworkSpec(name, hidden_size=size) for name, size in (("rnn", 3), ("gru", 4))]
    assert python_call(other, Settings(bounded=True), False).startswith(
        "ms.compare(ms.nn.NetworkSpec('rnn', hidden_size=3), "
    )
