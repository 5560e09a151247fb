"""The contract of networks: five kinds that it must carry, each from a file that CONTRIBUTING.md explains."""

import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from five_networks import NETWORKS, NormedResidual, PairsOfImages, SmallStateSpace, SmallTuringMachine
from tests.profiles.fake_sections import TRUE, only
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn import Stack

RECURRENT = [cls for cls in NETWORKS if cls.kind == "recurrent"]
HERE = Path(__file__).parent


def build(cls, **options):
    return cls(**cls.small_sizes, **options)


def inputs(network, time=4, batch=3):
    return torch.randn(time, batch, *network.input_shape)


@pytest.mark.parametrize("cls", NETWORKS)
def test_it_is_short(cls):
    assert len(inspect.getsource(cls).splitlines()) < 60


@pytest.mark.parametrize("cls", NETWORKS)
def test_it_keeps_the_contract(cls):
    report = ms.testing.check_network(cls, skip=("check_compile",))
    assert len(report.passed) >= (7 if cls is PairsOfImages else 40)
    allowed = ("option", "form", "bfloat16", "tensor classifier", "causal", "complex", "caller", "contiguous", "hidden")
    assert all(any(word in why for word in allowed) for why in report.skipped.values()), report.skipped


@pytest.mark.parametrize("cls", NETWORKS)
def test_it_trains_alone_and_in_a_population(cls):
    layers = [build(cls) for _ in range(3)]
    population = ms.nn.Population([layer.double() for layer in layers])
    x = torch.stack([inputs(layers[0], time=4).double() for _ in range(3)])
    together = population(x)
    for k, layer in enumerate(layers):
        alone = layer(x[k])
        for one, other in zip(*(torch.utils._pytree.tree_leaves(found) for found in (alone, together)), strict=True):
            torch.testing.assert_close(other[k], one)
    optimiser = torch.optim.SGD(population.parameters(), 0.1)
    output = together[0] if layers[0].stateful else together
    loss = output.square().mean()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in population.parameters())
    optimiser.step()
    again = population(x)
    assert (again[0] if layers[0].stateful else again).square().mean() < loss


@pytest.mark.parametrize("cls", RECURRENT)
def test_fit_trains_it_one_by_one_and_many_at_once(cls):
    task = ms.tasks.create("parity", length=6, dimensions=3)
    run = ms.training.fit(build(cls), task, iterations=3, batch_size=4)
    assert run.metrics
    runs = ms.training.fit_population([build(cls) for _ in range(2)], task, iterations=3, batch_size=4)
    assert len(runs) == 2


@pytest.mark.slow
@pytest.mark.parametrize("cls", NETWORKS)
def test_it_is_profiled(cls):
    parts = ms.profile(build(cls), quick=True, full=True).to_dict()["parts"]
    assert {part["status"] for part in parts.values()} <= {"done", "not applicable"}
    assert parts["card"]["status"] == "done"


@pytest.mark.parametrize("cls", NETWORKS)
def test_parts_of_its_profile(cls):
    with only(*(TRUE[name] for name in ("card", "parity", "gradients", "theory"))):
        parts = ms.profile(build(cls), quick=True, full=True).to_dict()["parts"]
    assert {part["status"] for part in parts.values()} <= {"done", "not applicable"}
    assert parts["card"]["status"] == "done"


def test_a_learned_start_gets_its_gradient():
    network = build(SmallTuringMachine)
    network(inputs(network))[0].sum().backward()
    assert network.initial_l0.grad.abs().sum() > 0


def test_submodules_are_drawn_stepped_and_reset_with_the_weights():
    first, again = (build(NormedResidual, num_layers=2, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    x = inputs(first)
    assert torch.equal(first(x)[0], again(x)[0])
    machine = build(SmallTuringMachine)
    doubled = torch.utils._pytree.tree_map(lambda leaf: 2 * leaf, machine.weights())
    state, x = machine.init_state(3), inputs(machine)[0]
    assert not torch.allclose(machine.step(x, state, doubled)[0], machine.step(x, state)[0])
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.mul_(2)
    torch.testing.assert_close(machine.step(x, state)[0], machine.step(x, state, machine.weights())[0])


def test_a_submodule_made_elsewhere_is_an_error_that_names_the_way():
    class Careless(NormedResidual):
        def __init__(self, input_size, hidden_size):
            super().__init__(input_size, hidden_size)
            self.readout = nn.Linear(hidden_size, 2)

    with pytest.raises(UserError, match=r"must make the submodule 'readout' in declare, by self\.submodule\('readout'"):
        Careless(3, 4)


def test_a_cell_that_returns_another_state_is_an_error():
    class Grows(NormedResidual):
        def advance(self, w, a, state):
            h, _ = super().advance(w, a, state)
            return h, (h, h)

    with pytest.raises(UserError, match="a step must return a state of the structure and shapes that it got"):
        Grows(3, 4)(torch.randn(5, 2, 3))


def test_forms_of_a_state_space_layer_agree_over_thousands_of_steps():
    layer = SmallStateSpace(3, 4, mode="parallel").double()
    other = SmallStateSpace(3, 4, mode="recurrent").double()
    other.load_state_dict(layer.state_dict())
    x = torch.randn(4096, 2, 3, dtype=torch.float64)
    for one, two in zip(layer(x), other(x), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)
    with pytest.raises(UserError, match="mode must be one of auto, recurrent, parallel, got 'chunked'"):
        SmallStateSpace(3, 4, mode="chunked")


def test_stepper_is_step_for_every_recurrent_network():
    for cls in [*RECURRENT, *map(ms.nn.get, ms.nn.names("recurrent"))]:
        network = build(cls, **({"capacity": 8} if cls.grows else {})).double()
        x, state = inputs(network, time=2).double(), network.init_state(3)
        step, other = network.stepper(), state
        for now in x:
            y, state = network.step(now, state)
            z, other = step(now, other)
            torch.testing.assert_close(z, y)
        flat = network.flatten_state
        torch.testing.assert_close(flat(other), flat(state))


def test_shapes_of_inputs_go_through_vectors():
    flat, shaped = ms.nn.RNN(6, 4), ms.nn.RNN((2, 3), 4)
    shaped.load_state_dict(flat.state_dict())
    x = torch.randn(5, 2, 2, 3)
    assert shaped.input_shape == (2, 3)
    assert shaped.input_size == 6
    assert torch.equal(shaped(x)[0], flat(x.flatten(2))[0])
    assert torch.equal(shaped(x[:, 0])[0], flat(x[:, 0].flatten(1))[0])
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    assert shaped(packed)[0].data.shape == (8, 4)
    with pytest.raises(UserError, match=r"the last axes of input must be input_shape = .2, 3., got .2, 6."):
        shaped(x.flatten(2))
    assert repr(shaped) == "RNN((2, 3), 4)"


def test_roles_answer_what_a_weight_is():
    layer = ms.nn.NNRNN(3, 4, num_layers=2)
    assert list(layer.matrices()) == ["weight_hh_l0", "weight_hh_l1"]
    assert torch.equal(layer.matrices()["weight_hh_l0"], layer.weight_hh_l0)
    assert {layer.role_of(name) for name, _ in layer.named_parameters()} == {"recurrent", "input", "bias"}


def test_facts_make_the_kind():
    assert [cls.kind for cls in NETWORKS] == ["recurrent"] * 3 + ["relational", "recurrent"]
    assert (ms.nn.TT.kind, ms.nn.TT.output_at, ms.nn.TT.stateful) == ("classifier", "once", False)
    assert (ms.nn.LSTM.kind, ms.nn.LSTM.output_at, ms.nn.LSTM.stateful) == ("recurrent", "steps", True)
    assert Stack.modes == ("recurrent",)
    assert SmallStateSpace.modes == ("recurrent", "parallel")


def test_a_state_that_occurs_is_finite_and_of_the_network():
    network = build(SmallTuringMachine)
    state = network.probe_states(7, torch.Generator().manual_seed(0))
    assert state[0].head.shape == (7, 5)
    torch.testing.assert_close(state[0].head.sum(-1), torch.ones(7))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The five networks as an installed package with entry points."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "five_networks.py").write_text((HERE / "five_networks.py").read_text())
    lines = [f"{cls.__name__.lower()} = five_networks:{cls.__name__}" for cls in NETWORKS]
    info = folder / "five-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: five\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mnemoscope.networks]\n" + "\n".join(lines) + "\n")
    return folder


def test_entry_points_list_them_and_files_keep_them(package):
    code = f"""
        import json, sys
        sys.path.insert(0, {str(package)!r})
        import torch, five_networks, mnemoscope as ms
        for cls in five_networks.NETWORKS:
            ms.nn.network("my-" + cls.__name__.lower(), family="mine", equations=(), state="", references=())(cls)
            layer = cls(**cls.small_sizes)
            ms.nn.save(layer, {str(package)!r} + "/layer.safetensors")
            twin, x = ms.nn.load({str(package)!r} + "/layer.safetensors"), torch.randn(4, 2, *layer.input_shape)
            first, second = layer(x), twin(x)
            assert torch.equal(first[0], second[0]), cls
        print(json.dumps({{name: ms.nn.get(name).kind for name in ms.nn.names()}}))
    """
    printed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    found = json.loads(printed.stdout)
    assert {cls.__name__.lower(): cls.kind for cls in NETWORKS}.items() <= found.items()
