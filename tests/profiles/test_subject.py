"""What a profile is of: names, files, classes and modules, how they are called and told apart."""

import pytest
from torch import nn

import mnemoscope as ms
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.subject import facts_of, fingerprint, network_words


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
