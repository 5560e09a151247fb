"""What a profile is of: names, files, classes and modules, how they are called and told apart."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.target import Target


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
        (Target("rnn"), "rnn", False, "rnn --hidden 64"),
        (
            Target("rnn", {"hidden_size": 5, "input_size": 2}, {"nonlinearity": "relu"}),
            "rnn nonlinearity=relu",
            False,
            None,
        ),
        (Target("cells.py:My", {"hidden_size": 5}), "My", False, "cells.py:My --hidden 5"),
        (Target("a b.safetensors"), "a b", True, "'a b.safetensors'"),
        (Target(Mine, {"hidden_size": 5}), "Mine", False, ""),
        (Target(Mine(2, 3)), "Mine", True, ""),
        (Target(ms.nn.LSTM(2, 3)), "lstm", True, ""),
        (Target(ms.adapt(Mine(2, 3))), "Mine", True, ""),
    ]
    for target, label, trained, words in table:
        assert (target.label, target.trained) == (label, trained)
        assert target.network(0).kind == "recurrent"
        if words is not None:
            assert (target.words() or "") == words
    assert table[1][0].words() == "rnn --hidden 5 --input-size 2 --set nonlinearity=relu"
    assert table[0][0].words(3) == "rnn --hidden 64 --input-size 3"


def test_a_seed_draws_the_weights_that_the_measure_command_draws():
    torch.manual_seed(3)
    expected = ms.nn.create("rnn", input_size=1, hidden_size=4)
    before = torch.random.get_rng_state()
    assert weights_digest(Target("rnn", {"hidden_size": 4}).network(3)) == weights_digest(expected)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_module_keeps_its_weights():
    module = Mine(2, 3)
    assert weights_digest(Target(module).network(0)) == weights_digest(Target(module).network(5))
    assert weights_digest(Target(Mine, {"hidden_size": 3}).network(0)) != weights_digest(
        Target(Mine, {"hidden_size": 3}).network(1)
    )


def test_facts():
    found = Target("lstm", {"hidden_size": 5, "input_size": 2}).facts(ms.nn.LSTM(2, 5))
    assert found["parameters"] == 4 * 5 * (5 + 2) + 8 * 5  # torch has two biases
    assert (found["state_size"], found["kind"], found["name"], found["class"]) == (10, "recurrent", "lstm", "LSTM")


def test_the_fingerprint_knows_weights_code_and_settings(file):
    target = Target("cells.py:My", {"hidden_size": 3})
    one = target.fingerprint(target.network(0), quick=False)
    assert target.fingerprint(target.network(0), quick=False) == one
    assert target.fingerprint(target.network(0), quick=True) != one
    assert target.fingerprint(target.network(1), quick=False) != one
    network = target.network(0)
    file.write_text(file.read_text() + "# changed\n")
    assert target.fingerprint(network, quick=False) != one


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Target(5), "network must be a name, a file, a class, a function that builds one, or a module, got 5"),
        (lambda: Target("rnn", {"hidden_size": 0}), "hidden_size must be a positive integer, got 0"),
        (lambda: Target(Mine(1, 2), {"hidden_size": 3}), "hidden_size .--hidden. cannot be given"),
        (lambda: Target("x.safetensors", {}, {"rank": 3}), "rank .--set. cannot be given"),
        (lambda: Target("x.safetensors").network(0), "there is no file 'x.safetensors'"),
        (lambda: Target("x.pt").network(0), "is a pickle, which could run code"),
        (lambda: Target("nope").network(0), "there is no network named 'nope'"),
    ],
)
def test_what_cannot_be_profiled(make, said):
    with pytest.raises(UserError, match=said):
        make()
