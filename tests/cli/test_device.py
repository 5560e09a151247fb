"""``--device`` of every command that builds networks."""

import pytest
import torch
import typer

from mnemoscope.cli.main import app
from mnemoscope.core.devices import chosen_device, computing_on
from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.training import Options


def commands():
    """Give the words of every command that computes, with the command."""
    whole = typer.main.get_command(app)
    for name in ("profile", "compare", "parity", "adapt", "check", "train", "capacity", "resume"):
        yield name, whole.commands[name]
    for group, name in (("study", "run"), ("atlas", "build")):
        yield f"{group} {name}", whole.commands[group].commands[name]
    for name in ("all", "fisher", "lyapunov", "resources"):
        yield f"measure {name}", whole.commands["measure"].get_command(None, name)


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_every_command_that_computes_has_it_once(words, command):
    assert sum("--device" in parameter.opts for parameter in command.params) == 1, words


@pytest.mark.parametrize(
    "words",
    [("measure", "resources", "rnn"), ("profile", "rnn"), ("capacity", "rnn", "copy"), ("train", "rnn", "copy"),
     ("study", "run", "depth-theorem-2")],
)  # fmt: skip
@pytest.mark.parametrize("device", ["cuda:9", "meta", "toaster"])
def test_a_device_that_is_not_there_is_one_line(call, words, device):
    done = call(*words, "--device", device)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: device must be a device of this machine, such as 'cpu', got")
    assert done.stderr.count("\n") == 1


def test_the_command_computes_there_and_the_next_does_not(call, monkeypatch):
    seen = []
    plain = NetworkSpec.build

    def build(self, **given):
        seen.append(chosen_device())
        return plain(self, **given)

    monkeypatch.setattr(NetworkSpec, "build", build)
    assert call("measure", "resources", "rnn", "--hidden", "4", "--device", "cpu", "--quick").exit_code == 0
    assert set(seen) == {"cpu"}
    seen.clear()
    assert call("measure", "resources", "rnn", "--hidden", "4", "--quick").exit_code == 0
    assert set(seen) == {None}


def test_the_environment_names_it(monkeypatch):
    spec = NetworkSpec("rnn", input_size=2, hidden_size=3)
    monkeypatch.setenv("MNEMOSCOPE_DEVICE", "cpu")
    assert Options(iterations=1).device == chosen_device() == "cpu"
    with computing_on(None):
        assert chosen_device() is None
    assert chosen_device() == "cpu"
    monkeypatch.setenv("MNEMOSCOPE_DEVICE", "toaster")
    with pytest.raises(UserError, match="device must be a device of this machine, such as 'cpu', got 'toaster'"):
        spec.build()


def test_networks_and_trainings_go_where_it_says():
    spec = NetworkSpec("rnn", input_size=2, hidden_size=3, seed=4)
    with computing_on("cpu"):
        assert Options(iterations=1).device == "cpu"
        assert torch.equal(spec.build().weight_hh_l0, NetworkSpec.build(spec).weight_hh_l0)
    assert Options(iterations=1).device is None
    assert "device" not in Options(iterations=1, device="cpu").to_dict()
    with pytest.raises(UserError, match="device must be a device of this machine"), computing_on("toaster"):
        pass
