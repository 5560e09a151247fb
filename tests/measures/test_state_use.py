"""Effective state-size: against operators written out, autograd's whole Jacobian, Hankel values and closed forms."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import effective_state_size, hankel_singular_values, operator
from mnemoscope.nn.ops.gates import hold_gates


def system(n, d=2, o=3, radius=0.9, seed=0):
    random = np.random.default_rng(seed)
    W = random.standard_normal((n, n))
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    return W, random.standard_normal((n, d)), random.standard_normal((o, n))


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def built(name, **sizes):
    sizes = {"input_size": 2, "hidden_size": 4, **sizes}
    return ms.nn.create(name, dtype=torch.float64, generator=torch.Generator().manual_seed(0), **sizes)


def jacobian(network, x):
    """The whole operator dy_t/dx_s, by autograd."""
    found = torch.autograd.functional.jacobian(lambda x: network(x)[0][:, 0], x)
    return found[:, :, :, 0]  # (time, output, time, input)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "lru", "rac", "gla"])
def test_factored_ranks_are_those_of_the_dense_operator(name):
    network = ms.nn.create(
        name, input_size=2, hidden_size=4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    x = torch.randn(12, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = effective_state_size(network, inputs=x, washout=0, cuts=11, tolerance=1e-3, gates="differentiated")
    T = jacobian(network, x)
    for place, (i, rank) in enumerate(zip(found.steps, found.ranks, strict=True)):
        values = torch.linalg.svdvals(T[i:, :, :i].flatten(0, 1).flatten(1))
        assert rank == int((values > 1e-3 * values[0]).sum())
        shares = values / values.sum()
        entropy = float(torch.exp(-torch.xlogy(shares, shares).sum()))
        assert found.entropy_ranks[place] == pytest.approx(entropy, rel=1e-8)
    middle = int(found.steps[len(found.steps) // 2])
    for unit in range(min(4, T.shape[1])):
        values = torch.linalg.svdvals(T[middle:, unit, :middle].flatten(1))
        assert found.channels[unit, len(found.steps) // 2] == int((values > 1e-3 * values[0]).sum())


def test_a_linear_network_tends_to_its_hankel_values():
    W, U, C = system(5, radius=0.6, seed=5)
    network = ms.nn.LinearSystem.of(W, U, C, np.zeros(5))
    found = effective_state_size(network, horizon=160, cuts=1 + 2, trajectories=1)
    assert found.singular_values[:5] == pytest.approx(hankel_singular_values(network).values, rel=1e-8)


def test_given_matrices_of_a_delay_line():
    """A pulse that comes out four steps later is in four numbers of five; read everywhere, in as many."""
    line, pulse = np.diag(np.ones(4), -1), np.eye(5)[:, :1]
    for C, values in ((np.eye(5)[-1:], [1, 1, 1, 1]), (np.eye(5), [2, 3**0.5, 2**0.5, 1])):
        found = effective_state_size(ms.nn.LinearSystem.of(line, pulse, C), horizon=30, tolerance=1e-9)
        assert (found.total, found.state_size) == (4, 5)
        assert found.singular_values[:4] == pytest.approx(values)


def test_units_in_other_scales_and_orders_change_nothing():
    W, U, C = system(5, seed=6)
    scale, order = np.diag([1e3, 1.0, 1e-3, 10.0, 0.1]), np.eye(5)[[3, 1, 0, 4, 2]]
    turn = order @ scale
    same = ms.nn.LinearSystem.of(turn @ W @ np.linalg.inv(turn), turn @ U, C @ np.linalg.inv(turn), np.zeros(5))
    one, other = (effective_state_size(net) for net in (ms.nn.LinearSystem.of(W, U, C, np.zeros(5)), same))
    assert one.ranks.tolist() == other.ranks.tolist()
    assert one.entropy_ranks == pytest.approx(other.entropy_ranks, rel=1e-8)


def test_a_strangers_module_and_unused_units():
    class Half(torch.nn.Module):
        """Eight units, of which two are read."""

        def __init__(self):
            super().__init__()
            self.cell = torch.nn.RNNCell(1, 8)

        def forward(self, x, h):
            h = self.cell(x, h)
            return h[:, :2] * torch.tensor([1.0, 0.0]), h

    torch.manual_seed(0)
    network = ms.adapt(Half(), kind="cell")
    with torch.no_grad():
        network.module.cell.weight_hh.copy_(torch.block_diag(0.5 * torch.eye(2), 0.5 * torch.eye(6)))
    found = effective_state_size(network, tolerance=1e-6)
    assert found.total == 1
    assert found.state_size == 8
    assert "1 of 8 numbers of the state are used (12%)" in str(found)


# Gates that are held ----------------------------------------------------------------------------------


def retention(network, x):
    """The operator of gated linear attention from its equations: o_i = sum_j q_i . (a_{j+1}..a_i k_j) v_j."""
    w = {name.removesuffix("_l0"): value.detach() for name, value in network.named_parameters()}
    q, k, v = (w["weight_ih"][part * 4 : part * 4 + 4] for part in range(3))
    alpha = torch.sigmoid(x @ w["weight_low"].T @ w["weight_gate"].T + w["bias"]) ** (1 / 16)
    found = torch.zeros(len(x), 4, len(x), 2, dtype=torch.float64)
    for i in range(len(x)):
        for j in range(i + 1):
            kept = alpha[j + 1 : i + 1].prod(0) * (k @ x[j])
            found[i, :, j] = (q @ x[i] / 2) @ kept * v
    return found


def test_held_gates_give_the_operator_of_an_input_varying_network():
    network, x = built("gla", heads=1), normal(12, 1, 2)
    T = retention(network, x[:, 0])
    assert torch.allclose(torch.einsum("iojd,jd->io", T, x[:, 0]), network(x)[0][:, 0]), "y = T(x) x"
    found = effective_state_size(network, inputs=x, washout=0, cuts=11)
    assert found.gates == "held"
    for place, i in enumerate(found.steps):
        values = torch.linalg.svdvals(T[i:, :, :i].flatten(2).flatten(0, 1))
        assert found.ranks[place] == int((values > 1e-3 * values[0]).sum())
        shares = values / values.sum()
        assert found.entropy_ranks[place] == pytest.approx(
            float(torch.exp(-torch.xlogy(shares, shares).sum())), rel=1e-8
        )
    jacobian = effective_state_size(network, inputs=x, washout=0, cuts=11, gates="differentiated")
    assert "held at their values" in found.assumptions[0]
    mamba, u = built("mamba"), normal(6, 2)
    with hold_gates():
        T = torch.autograd.functional.jacobian(lambda u: mamba(u[:, None])[0][:, 0], u)
    assert torch.allclose(torch.einsum("iojd,jd->io", T, u), mamba(u[:, None])[0][:, 0]), "y = T(u) u"
    assert "what inputs do to gates included" in jacobian.assumptions[0]
    assert not np.allclose(jacobian.entropy_ranks, found.entropy_ranks), "inputs do something to gates"


LINEAR_IN_VALUES = ["gla", "mamba", "mamba2", "hgrn2", "rglru", "mingru", "minlstm", "retnet", "mlstm", "deltanet"]


@pytest.mark.parametrize("name", [*LINEAR_IN_VALUES, "gated-deltanet", "lstm", "gru", "slstm", "rwkv7", "goru"])
def test_networks_with_gates_declare_them(name):
    assert effective_state_size(built(name), horizon=8, washout=4, cuts=3).gates == "held"


@pytest.mark.parametrize(("ours", "torchs"), [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_torchs_own_modules_have_the_same_gates(ours, torchs):
    network = built(ours)
    module = torchs(2, 4).double()
    module.load_state_dict(network.state_dict())
    one, other = (effective_state_size(each, horizon=20) for each in (network, module))
    assert one.gates == other.gates == "held"
    assert one.entropy_ranks == pytest.approx(other.entropy_ranks)


@pytest.mark.parametrize("name", ["rnn", "lru", "rac"])
def test_networks_without_gates_are_differentiated(name):
    assert effective_state_size(built(name), horizon=8, washout=4, cuts=3).gates == "differentiated"


# Forms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pushed", [False, True])
@pytest.mark.parametrize("name", ["lstm", "gla", "lru", "rac", "urnn"])
def test_factored_and_dense_forms_are_one(name, pushed, monkeypatch):
    monkeypatch.setattr(operator, "_PUSHED", 0 if pushed else 10**6)
    network = built(name, input_size=1, hidden_size=6)
    one, other = (effective_state_size(network, horizon=16, washout=5, form=form) for form in ("factored", "dense"))
    assert (one.form, other.form) == ("factored", "dense")
    shared = min(len(one.singular_values), len(other.singular_values))
    assert one.singular_values[:shared] == pytest.approx(other.singular_values[:shared], rel=1e-8, abs=1e-12)
    assert one.entropy_ranks == pytest.approx(other.entropy_ranks, rel=1e-8)
    assert one.ranks.tolist() == other.ranks.tolist()
    common = [one.outputs.tolist().index(o) for o in other.outputs if o in one.outputs]
    assert one.channels[common].tolist() == other.channels.tolist()


class Filter(torch.nn.Module):
    """A stranger's block without a state: the last three inputs, weighted."""

    def forward(self, x):  # (batch, time, 1)
        past = torch.nn.functional.pad(x, (0, 0, 2, 0))
        return past[:, 2:] + 0.5 * past[:, 1:-1] + 0.25 * past[:, :-2]


def test_a_block_without_a_state_has_the_rank_of_its_filter():
    found = effective_state_size(ms.adapt(Filter(), kind="sequence", batch_first=True, input_size=1), horizon=20)
    assert found.ranks[2:-2].tolist() == [2] * 5, "two inputs of the past act on the future"
    assert found.total == 2
    assert (found.state_size, found.utilisation, found.form) == (None, None, "dense")
    assert "a network without a state" in str(found)


def test_a_memory_larger_than_its_operator_is_followed_along_what_inputs_reach(monkeypatch):
    network = built("transformer", input_size=1, hidden_size=4, capacity=40)
    found, whole = (
        effective_state_size(network, horizon=6, washout=2, trajectories=1, form=form) for form in (None, "dense")
    )
    assert found.state_size > 6 * 4
    assert (found.form, found.total) == ("factored", whole.total)
    np.testing.assert_allclose(found.singular_values, whole.singular_values[: len(found.singular_values)], atol=1e-9)
    monkeypatch.setattr("mnemoscope.measures.operator._pushable", lambda path: False)
    assert effective_state_size(network, horizon=6, washout=2, trajectories=1).form == "dense"


# Inputs and what is said ------------------------------------------------------------------------------


def test_inputs_of_a_task():
    found = effective_state_size(built("rnn", input_size=10), task="copying", horizon=30)
    assert "inputs are those of the task copying" in found.assumptions
    with pytest.raises(UserError, match="the task copying has 10 inputs a step, got a network of 2"):
        effective_state_size(built("rnn"), task="copying")
    with pytest.raises(UserError, match="inputs and task cannot be given together"):
        effective_state_size(built("rnn"), task="copying", inputs=normal(4, 1, 2))


def test_text_comes_as_vectors_of_its_characters(monkeypatch):
    class Text:
        embedding = 3

        def sample(self, batch, generator):
            return ms.tasks.batch.Batch(torch.arange(12).reshape(6, 2) % 3, *[torch.zeros(1)] * 3)

    monkeypatch.setattr("mnemoscope.tasks.create", lambda name: Text())
    from mnemoscope.measures.inputs import task_inputs

    one_hot = task_inputs("text", 3, 2, torch.Generator().manual_seed(0))
    assert one_hot[0, 1].tolist() == [0, 1, 0]
    drawn = task_inputs("text", 5, 2, torch.Generator().manual_seed(0))
    assert drawn.shape == (6, 2, 5)
    assert torch.equal(drawn[0, 0], drawn[3, 0]), "a character is one vector wherever it stands"


def test_a_window_too_short_for_the_state_is_said():
    found = effective_state_size(built("linear-rnn", input_size=1, hidden_size=30), horizon=20)
    assert found.limited
    assert found.total <= found.window < 30
    assert "can show in so few steps" in str(found)
    assert not effective_state_size(built("linear-rnn", input_size=1)).limited


def test_a_linear_network_is_exact_and_a_silent_one_uses_nothing():
    network = ms.nn.LinearSystem.of(*system(4), np.zeros(4))
    assert effective_state_size(network, horizon=30).status == "exact"
    with torch.no_grad():
        network.weight_out_l0.zero_()
    silent = effective_state_size(network, horizon=30)
    assert silent.total == silent.entropy_total == 0
    assert "nothing of the state is used" in str(silent)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 1}, "horizon must be at least 2, a past and a future, got 1"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"tolerance": 1}, "tolerance must be below 1"),
        ({"inputs": torch.full((4, 1, 2), torch.nan)}, "inputs must be finite"),
        ({"gates": "open"}, "gates must be"),
        ({"gates": "held"}, "needs a network that declares gates"),
        ({"inputs": torch.zeros(4, 2)}, r"inputs must be of shape \(time, trajectories, 2\), got \(4, 2\)"),
    ],
)
def test_one_line_for_what_cannot_be_measured(options, said):
    with pytest.raises(UserError, match=said):
        effective_state_size(built("rnn"), **options)
