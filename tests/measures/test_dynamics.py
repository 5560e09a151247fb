"""Networks prepared for measures: one copy for all of them, probes at states that occur, no check that NaN passes."""

import copy
from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.trajectory import affine, constant_jacobians, drive

MEASURED = {
    "network_fisher_memory": {"longest": 32, "trajectories": 2, "washout": 10},
    "gradient_norms": {"horizon": 20, "trajectories": 2},
    "lyapunov_exponents": {"horizon": 20, "transient": 5, "trajectories": 2, "washout": 10},
    "memory_capacity": {"lag": 5, "samples": 2048},
    "spectrum": {"horizon": 10},
    "separation_rank": {"horizon": 4, "templates": 2},
    "state_tracking_witness": {"iterations": 3, "restarts": 1},
}


class Simplex(nn.Module):
    """A belief over n places, moved by Bayes' rule and a kernel: p' = K (p * likelihood(x)), normalised.

    Its logarithm is NaN at any state with a negative number, such as one with noise on every number.
    """

    def __init__(self, places: int = 5) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(3)
        self.gain = nn.Parameter(torch.randn(places, 2, generator=draw))
        self.register_buffer("kernel", torch.rand(places, places, generator=draw).softmax(0))

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        return (p.log() + x @ self.gain.T).softmax(-1) @ self.kernel.T


def simplex() -> nn.Module:
    start = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05])
    return ms.adapt(Simplex(), kind="cell", input_size=2, init_state=lambda batch: start.expand(batch, -1))


class Root(nn.Module):
    """h' = sqrt(h), from h = 0 on: its derivative is infinite at the only state that occurs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 1))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.sqrt(h.clamp_min(0)) + 0 * (x @ self.weight.T)


def numbers(result: object) -> list[np.ndarray]:
    found = [getattr(result, each.name) for each in fields(result)]
    return [np.asarray(each) for each in found if isinstance(each, int | float | np.ndarray)]


def assert_same(one: object, other: object) -> None:
    for a, b in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", MEASURED)
def test_states_on_a_simplex_are_measured(function):
    """Noise of any size on a state would make its logarithm NaN; probes and trajectories stay where states are."""
    found = getattr(ms.measures, function)(simplex(), **MEASURED[function])
    essential = {"network_fisher_memory": "curve", "gradient_norms": "norms", "lyapunov_exponents": "exponents"}
    values = (
        getattr(found, essential[function])
        if function in essential
        else np.concatenate([each.ravel() for each in numbers(found) if each.dtype.kind in "fiu"])
    )
    assert len(values)
    assert not np.isnan(values).any()
    assert getattr(found, "linear", False) is False


def test_probes_are_states_that_occur():
    dynamics = Dynamics.of(simplex())
    _, state = dynamics.probes(32, torch.Generator().manual_seed(0))
    flat = dynamics.flatten(state)
    assert bool((flat >= 0).all())
    torch.testing.assert_close(flat.sum(1), torch.ones(32, dtype=torch.float64))
    assert len(flat.unique(dim=0)) > 20
    assert constant_jacobians(dynamics) is None


@pytest.mark.parametrize("function", ["network_fisher_memory", "gradient_norms", "lyapunov_exponents"])
def test_a_derivative_that_is_nan_is_refused(function):
    network = ms.adapt(Root(), kind="cell", input_size=1, init_state=lambda batch: torch.zeros(batch, 3))
    with pytest.raises(ms.core.errors.UserError, match=f"{function} needs derivatives, .* NaN or infinite at states"):
        getattr(ms.measures, function)(network)


@pytest.mark.parametrize("name", ["lstm", "nnrnn", "linear-rnn"])
@pytest.mark.parametrize("function", MEASURED)
def test_a_prepared_network_gives_the_same_numbers(name, function):
    layer = ms.nn.create(name, input_size=2, hidden_size=4)
    prepared = Dynamics.of(layer)
    getattr(ms.measures, function)(prepared, **MEASURED[function])  # what it leaves behind changes nothing
    measure, options = getattr(ms.measures, function), MEASURED[function]
    assert_same(measure(prepared, **options), measure(layer, **options))


def test_one_copy_serves_all_measures(monkeypatch):
    layer, copies = ms.nn.create("lstm", input_size=2, hidden_size=4), []
    deep = copy.deepcopy
    monkeypatch.setattr(copy, "deepcopy", lambda *args: copies.append(args[0]) or deep(*args))
    prepared = Dynamics.of(layer)
    for function, options in MEASURED.items():
        getattr(ms.measures, function)(prepared, **options)
    assert [each for each in copies if isinstance(each, nn.Module)] == [layer]


def test_autonomous_networks_start_apart_without_leaving_their_states():
    found = ms.measures.lyapunov_exponents(simplex(), scale=0.0, horizon=20, transient=0, trajectories=3)
    assert np.isfinite(found.exponents[:-1]).all()


@pytest.mark.parametrize("name", ["memrnn", "memlstm", "sab", "transformer"])
def test_a_memory_that_grows_has_room_in_a_measure(name):
    """Without a capacity it is what it is with that of a measure."""
    options = {"input_size": 1, "hidden_size": 4}
    given = ms.nn.NetworkSpec(name, **options).build()
    told = ms.nn.NetworkSpec(name, **options, capacity=ms.measures.ROOM).build()
    found, wanted = (ms.measures.gradient_norms(each, horizon=9, trajectories=2) for each in (given, told))
    np.testing.assert_array_equal(found.norms, wanted.norms)
    assert given.capacity is None


def test_a_measure_that_needs_more_room_makes_it():
    """As if the capacity had been given: 456 steps of `memory_capacity`, 410 of the others, against 400 else."""
    options = {"input_size": 1, "hidden_size": 3}

    def found(capacity):
        layer = ms.nn.NetworkSpec("memrnn", **options, capacity=capacity).build()
        return (
            ms.measures.memory_capacity(layer, lag=100).total,
            ms.measures.gradient_norms(layer, horizon=10, washout=200, trajectories=1).log_norms.tolist(),
            ms.measures.lyapunov_exponents(
                layer, count=1, horizon=10, transient=0, washout=200, trajectories=1
            ).exponents.tolist(),
        )

    assert found(None) == found(600)
    with pytest.raises(UserError, match="a sequence of 41 steps does not fit: give MemRNN capacity=41"):
        ms.measures.gradient_norms(ms.nn.NetworkSpec("memrnn", **options, capacity=40).build(), horizon=41)


def test_a_cache_is_no_linear_network_and_never_met_as_a_matrix():
    """Keys and values are written to another place at every step; a matrix of 51,200 numbers of state takes 21 GB."""
    flow = Dynamics.of(ms.nn.create("transformer", input_size=1, hidden_size=64), differentiable=False)
    assert flow.size == 51_200
    assert not affine(flow)
    assert constant_jacobians(flow) is None
    assert ms.measures.effective_state_size(flow, horizon=8, trajectories=1).status == "estimate"


def test_resources_of_a_memory_that_grows_say_that_it_does():
    found = ms.measures.resources(ms.nn.NetworkSpec("memrnn", hidden_size=4).build(), lengths=(4, 8, 16), repeats=1)
    assert found.state_size is None
    assert found.assumptions[0] == "steps are those of a memory with room for 16"


def test_measures_that_ask_for_the_same_trajectories_share_them():
    flow = Dynamics.of(ms.nn.GRU(1, 4))
    asked = {"steps": 5, "trajectories": 2, "scale": 1.0, "washout": 3}
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 0, 1)]
    first, again, other = (drive(flow, **asked, generator=each) for each in generators)
    assert again.states is first.states
    assert torch.equal(torch.randn(3, generator=generators[0]), torch.randn(3, generator=generators[1]))
    assert not torch.equal(other.inputs, first.inputs)
    fresh = drive(Dynamics.of(ms.nn.GRU(1, 4)), **asked, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fresh.inputs, first.inputs)
    longer = drive(flow, **{**asked, "steps": 6}, generator=torch.Generator().manual_seed(1))
    assert len(longer.states) == 7


def test_what_is_read_of_a_state_is_where_its_matrix_has_ones():
    for name in ("lstm", "relrnn", "urnn"):
        flow = Dynamics.of(ms.nn.create(name, input_size=1, hidden_size=4), "a measure", differentiable=False)
        like = flow.start(1)
        flat = flow.flatten(like)

        def pick(flat, flow=flow, like=like):
            return flow.flatten(flow.network.readout_state(flow.unflatten(flat, like))).squeeze(0)

        assert torch.equal(flow.readout(), torch.func.jacrev(pick)(flat).squeeze(1))
