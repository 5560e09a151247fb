"""What theory says of a network, against live measures of that network and against things counted by hand."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope import measures, theory
from mnemoscope.core.errors import UserError
from mnemoscope.core.references import REFERENCES
from mnemoscope.theory.theorems import TOPICS, NetworkView, statements


def said(network, claim):
    found = [statement for statement in statements(network) if statement["claim"] == claim]
    assert len(found) == 1, f"{claim} in {[s['claim'] for s in statements(network)]}"
    return found[0]


def claims_about(network):
    return {statement["claim"] for statement in statements(network)}


def stable_linear(n=6, d=2, layers=1, seed=0):
    layer = ms.nn.LinearRNN(d, n, layers, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for k in range(layers):
        V = getattr(layer, f"weight_hh_l{k}").detach()
        setattr(layer, f"weight_hh_l{k}", 0.9 * V / torch.linalg.eigvals(V).abs().max())
    return layer


def networks():
    for name in ms.nn.names():
        kind = ms.nn.get(name).kind
        if kind != "recurrent":
            sizes = {"features": 3, "rank": 4, "length": 6, "classes": 2} if kind == "classifier" else {}
            yield name, ms.nn.create(name, **(sizes or ms.nn.get(name).small_sizes))
            continue
        for layers in (1, 2, 3):
            sizes = {"input_size": 3, "hidden_size": 7}
            if not isinstance(ms.nn.get(name).small_sizes["hidden_size"], int):
                sizes = ms.nn.get(name).small_sizes
            yield f"{name} x {layers}", ms.nn.create(name, **sizes, num_layers=layers)


@pytest.mark.parametrize("network", [pytest.param(network, id=name) for name, network in networks()])
def test_statements_are_whole(network):
    found = statements(network)
    assert len({statement["claim"] for statement in found}) == len(found)
    topics = [statement["topic"] for statement in found]
    assert topics == sorted(topics, key=list(TOPICS).index)
    for statement in found:
        assert set(statement) == {"claim", "topic", "text", "value", "status", "source", "reference"}
        assert bool(statement["source"]) == (statement["status"] != "none")
        assert statement["status"] in ("exact", "bound", "conjecture", "none")
        assert statement["reference"] in REFERENCES or not statement["reference"]
        assert statement["value"] is None or math.isfinite(statement["value"])
        assert statement["text"].endswith(".")
        assert not re.search(r"\b(nan|inf)\b", statement["text"])
    if network.kind == "recurrent":
        assert {"capacity", "fisher", "copying", "gradients", "separation"} <= set(topics)


def test_silence_is_said():
    lstm = {s["topic"]: s for s in statements(ms.nn.LSTM(3, 8)) if s["status"] == "none"}
    assert set(lstm) == {"fisher", "gradients", "separation"}
    assert all(s["text"].startswith("No theorem here") and s["value"] is None for s in lstm.values())
    assert not {s["topic"] for s in statements(stable_linear()) if s["status"] == "none"}


# Memory capacity -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "layers"), [(5, 1), (3, 2)])
def test_capacity_of_a_linear_network(n, layers):
    layer = stable_linear(n, 1, layers)
    found = measures.memory_capacity(layer)
    assert said(layer, "capacity-rank")["value"] == pytest.approx(found.total, abs=1e-6)
    assert said(layer, "capacity-bound")["value"] == n * layers >= found.total - 1e-9
    kept = np.flatnonzero(np.asarray(found.curve) >= 0.5)
    assert said(layer, "capacity-eigenvalues")["value"] == kept[-1]


def test_capacity_rank_counts_what_the_input_reaches():
    layer = stable_linear(4, 1)
    layer.weight_hh_l0 = torch.diag(torch.tensor([0.5, 0.5, 0.3, 0.2]))
    layer.weight_ih_l0 = torch.ones(4, 1)
    assert said(layer, "capacity-rank")["value"] == 3


@pytest.mark.parametrize("name", ["lstm", "gru", "rac", "urnn"])
def test_capacity_bound_is_the_state_size(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=5)
    sizes = {"lstm": 10, "gru": 5, "rac": 5, "urnn": 10}
    assert said(layer, "capacity-bound")["value"] == sizes[name]


# Fisher memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_fisher_bounds_of_linear_networks(layers, seed):
    layer = stable_linear(5, 2, layers, seed)
    found = measures.network_fisher_memory(layer)
    assert found.linear
    assert found.total <= said(layer, "kerg-fisher-trace")["value"] * (1 + 1e-9)
    assert found.curve[10] <= said(layer, "kerg-amplification-bound")["value"] * (1 + 1e-9)


@pytest.mark.parametrize("name", ["rnn", "irnn", "orth-rnn", "scornn", "henaff", "nnrnn"])
@pytest.mark.parametrize("layers", [1, 2])
def test_fisher_bound_of_first_order_networks(name, layers):
    layer = ms.nn.create(name, input_size=2, hidden_size=6, num_layers=layers)
    found = measures.network_fisher_memory(layer, horizon=30, trajectories=2, washout=10)
    assert found.total <= said(layer, "kerg-fisher-trace")["value"]


def test_fisher_total_of_a_normal_network():
    layer = stable_linear(6, 2)
    V = layer.weight_hh_l0.detach()
    symmetric = V + V.T
    layer.weight_hh_l0 = 0.8 * symmetric / torch.linalg.eigvalsh(symmetric).abs().max()
    total = measures.network_fisher_memory(layer).total
    assert said(layer, "kerg-fisher-normal")["value"] == pytest.approx(total, rel=1e-9)
    turning = ms.nn.ExpRNN(2, 6, nonlinearity="identity", dtype=torch.float64)
    finite = measures.network_fisher_memory(turning, horizon=25).total
    assert said(turning, "kerg-fisher-normal")["value"] == pytest.approx(finite, rel=1e-6)
    assert "kerg-fisher-normal" not in claims_about(stable_linear(6, 2))


def test_fisher_memory_of_a_delay_line():
    layer = stable_linear(7, 1)
    line = theory.delay_line(7, gain=1.3)
    layer.weight_hh_l0, layer.weight_ih_l0 = line.W, 2 * line.v[:, None]
    total = measures.network_fisher_memory(layer).total
    assert said(layer, "kerg-delay-line")["value"] == pytest.approx(total, rel=1e-9)
    assert "sharper-triangular-bound" not in claims_about(layer)


def test_fisher_memory_of_a_chain_with_shortcuts():
    layer = stable_linear(6, 1)
    layer.weight_hh_l0 = theory.kerg_matrix(6, alpha=1.1, beta=0.2)
    layer.weight_ih_l0 = np.eye(6)[:, :1]
    assert said(layer, "sharper-triangular-bound")["value"] <= measures.network_fisher_memory(layer).total
    assert "kerg-delay-line" not in claims_about(layer)


# Copying ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "layers", "d"), [(7, 1, 2), (5, 3, 2), (4, 2, 1)])
def test_the_copy_limit_is_reached_by_a_network(n, layers, d):
    layer = stable_linear(n, d, layers)
    lag = int(said(layer, "depth-copy-all-inputs")["value"])
    built = theory.copy_weights(lag, n, layers, d)
    for name, weight in built.weights.items():
        setattr(layer, name, weight)
    x = torch.randn(4 * lag, 3, d, dtype=torch.float64)
    y = layer(x)[0] @ torch.from_numpy(built.readout).T
    torch.testing.assert_close(y[lag:], x[:-lag])
    with pytest.raises(UserError):
        theory.copy_weights(lag + 1, n, layers, d)


def test_copying_of_constrained_and_of_narrow_networks():
    bound = said(ms.nn.ExpRNN(2, 6, nonlinearity="identity"), "depth-copy-all-inputs")
    assert (bound["status"], bound["value"]) == ("bound", 2)
    assert "depth-cheapest-network" not in claims_about(ms.nn.ExpRNN(2, 6, nonlinearity="identity"))
    assert "depth-copy-all-inputs" in claims_about(stable_linear(2, 3))
    assert said(ms.nn.RNN(2, 6), "copy-state-bits")["value"] == 6 * 32 // 3


def test_the_cheapest_network_copies_as_far():
    layer = stable_linear(9, 2, 2)
    lag, fewest = said(layer, "depth-copy-all-inputs")["value"], said(layer, "depth-cheapest-network")["value"]
    able = [
        theory.copy_parameters(n, depth, 2)
        for depth in range(1, int(lag) + 1)
        for n in range(2, 40)
        if theory.copy_limit(n, depth, 2) >= lag
    ]
    assert fewest == min(able)


def test_critical_width_of_two_layers():
    assert said(stable_linear(5, 1, 2), "depth-critical-width")["value"] == pytest.approx(3.302775637731995)
    assert "it does not" in said(stable_linear(3, 1, 2), "depth-critical-width")["text"]


def test_interference_of_henaffs_clocks():
    layer = stable_linear(41, 10)
    value = said(layer, "henaff-clocks")["value"]
    delay, symbols = 30, 10
    errors = []
    for seed in range(40):
        V, U, W = theory.henaff_copy(20, delay, symbols, 8, seed=seed)
        letters = np.random.default_rng(seed).integers(8, size=symbols)
        h = np.zeros(41)
        scores = []
        for t in range(delay + 2 * symbols):
            x = np.eye(10)[1 + letters[t]] if t < symbols else np.zeros(10)
            h = V @ h + U @ x
            scores.append(W @ h)
        right = [scores[delay + symbols + t][letters[t]] for t in range(symbols)]
        errors.extend(np.array(right) - 1)
    assert np.std(errors) == pytest.approx(value, rel=0.25)


# Gradients -------------------------------------------------------------------------------------------------------


def test_gradients_of_orthogonal_networks():
    linear = ms.nn.ExpRNN(2, 6, nonlinearity="identity")
    assert said(linear, "gradient-constant")["value"] == 0
    norms = measures.gradient_norms(linear, horizon=60, trajectories=2).norms
    np.testing.assert_allclose(norms, norms[0], rtol=1e-4)
    bent = ms.nn.SCORNN(2, 6)
    assert said(bent, "ziv-orthogonal-relu")["status"] == "bound"
    assert (np.diff(measures.gradient_norms(bent, horizon=60, trajectories=4).log_norms) <= 1e-6).all()


def test_gradients_of_free_networks():
    layer = ms.nn.RNN(2, 8)
    found = measures.gradient_norms(layer, horizon=50, trajectories=4)
    rate = said(layer, "gradient-norm")["value"]
    lags = np.arange(len(found.log_norms))
    assert (found.log_norms <= found.log_norms[0] + rate * lags + 1e-9).all()


@pytest.mark.parametrize("name", ["rnn", "irnn", "scornn"])
def test_gradients_of_deep_networks(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=5, num_layers=3)
    found = measures.lyapunov_exponents(layer, count=1, horizon=400, trajectories=2)
    assert found.exponents[0] <= said(layer, "gradient-deep")["value"] + 3 * found.stderr[0] + 1e-2


def test_lyapunov_exponents_of_linear_networks():
    layer = stable_linear(5, 2, 2)
    assert said(layer, "lyapunov-eigenvalues")["value"] == pytest.approx(
        measures.lyapunov_exponents(layer).exponents[0], abs=1e-9
    )
    henaff = ms.nn.Henaff(2, 6)
    assert said(henaff, "lyapunov-eigenvalues")["value"] == 0


@pytest.mark.parametrize(("name", "options"), [("lru", {}), ("s4d", {"order": 4}), ("s4", {"order": 4})])
def test_state_spaces_are_linear_networks(name, options):
    layer = ms.nn.create(name, input_size=1, hidden_size=3, dtype=torch.float64, **options)
    top = measures.lyapunov_exponents(layer).exponents[0]
    assert said(layer, "lyapunov-eigenvalues")["value"] == pytest.approx(top, abs=1e-6)
    assert said(layer, "capacity-rank")["value"] <= layer.state_size
    assert said(layer, "separation-linear")["value"] == 2


@pytest.mark.parametrize("name", ["gla", "hgrn2", "mamba", "mamba2", "mingru", "rglru", "deltanet", "retnet"])
def test_gradients_through_gates_and_projections(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=4, dtype=torch.float64)
    assert said(layer, "gradient-contraction")["value"] == 0
    found = measures.gradient_norms(layer, horizon=30, trajectories=2).log_norms
    assert np.diff(found[np.isfinite(found)]).max() <= 1e-9
    assert "gradient-contraction" not in claims_about(ms.nn.create(name, input_size=2, hidden_size=4, num_layers=2))


def test_margin_of_soft_orthogonality():
    layer = ms.nn.SoftOrth(2, 6, margin=0.2)
    with torch.no_grad():
        for parameter in layer.parametrizations["weight_hh_l0"].parameters(recurse=False):
            parameter.add_(5 * torch.randn_like(parameter))
    layer.after_step()
    assert np.linalg.norm(layer.weight_hh_l0.detach(), 2) <= math.exp(said(layer, "gradient-margin")["value"]) + 1e-6


def test_polynomial_growth_of_nnrnn():
    layer = ms.nn.NNRNN(2, 6, nonlinearity="identity", gamma="clamped", dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parametrizations["weight_hh_l0"].parameters(recurse=False):
            parameter.add_(0.5 * torch.randn_like(parameter))
    order = said(layer, "kerg-polynomial-gradients")["value"]
    V = layer.weight_hh_l0.detach().numpy()
    norms = [np.linalg.norm(np.linalg.matrix_power(V, k), 2) for k in (1000, 2000)]
    assert math.log2(norms[1] / norms[0]) <= order + 0.05


# Spectrum and reach ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scornn", "exprnn", "full-urnn", "ornn", "eurnn"])
def test_spectrum_of_orthogonal_networks(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=6)
    assert "by construction" in said(layer, "spectrum-orthogonal")["text"]
    found = measures.spectrum(layer)
    np.testing.assert_allclose(np.abs(found.eigenvalues), 1, atol=1e-5)
    assert found.henrici < 1e-2
    assert found.kreiss == pytest.approx(1, abs=1e-4)


def test_spectrum_of_nnrnn():
    layer = ms.nn.NNRNN(2, 6)
    with torch.no_grad():
        for parameter in layer.parametrizations["weight_hh_l0"].parameters(recurse=False):
            parameter.add_(0.3 * torch.randn_like(parameter))
    radius = float(np.abs(measures.spectrum(layer).eigenvalues).max())
    assert said(layer, "kerg-nnrnn-moduli")["value"] == pytest.approx(radius, rel=1e-5)
    assert "spectrum-orthogonal" not in claims_about(layer)
    assert "are not its gammas" in said(ms.nn.NNRNN(2, 6, block="published"), "kerg-nnrnn-moduli")["text"]


def test_kreiss_theorem():
    layer = stable_linear(6, 1)
    found = measures.spectrum(layer)
    assert found.kreiss * (1 - 1e-9) <= found.amplification <= said(layer, "kreiss-matrix-theorem")["value"]


@pytest.mark.parametrize(("n", "part"), [(7, False), (8, True), (64, True)])
def test_urnn_reaches_all_unitary_matrices_up_to_seven_units(n, part):
    assert ("reach-part" in claims_about(ms.nn.URNN(1, n))) == part


def test_reach_is_the_rank_of_the_map():
    for layer in (ms.nn.ORNN(1, 6, reflections=2), ms.nn.EURNN(1, 6, rotations=3), ms.nn.ExpRNN(1, 4)):
        layer = layer.double()
        own = next(iter(layer.parametrizations["weight_hh_l0"].parameters(recurse=False)))
        jacobian = torch.func.jacrev(lambda p, layer=layer: layer.transition().map(p))(own.detach())
        rank = int(torch.linalg.matrix_rank(jacobian.reshape(-1, own.numel()), rtol=1e-8))
        subject = NetworkView(layer)
        group = subject.n * (subject.n - 1) // 2
        if rank < group:
            assert said(layer, "reach-part")["value"] == pytest.approx(rank / group)
        else:
            assert said(layer, "reach-whole")["value"] == rank


# Separation and degree -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n", "layers"), [(2, 3, 1), (2, 2, 2), (3, 2, 2), (2, 2, 3)])
def test_separation_rank_of_racs(d, n, layers):
    layer = ms.nn.RAC(d, n, layers, output_size=1)
    rank = measures.separation_rank(layer, horizon=8).rank
    if layers == 1:
        assert said(layer, "ziv-theorem-1-shallow")["value"] == rank
        return
    lower = "ziv-theorem-1-deep" if layers == 2 else "ziv-conjecture-1"
    assert said(layer, lower)["value"] <= rank <= said(layer, "ziv-separation-upper")["value"]
    if layers == 2:
        assert said(layer, "ziv-depth-two-rank")["value"] == rank


def test_separation_rank_of_linear_networks():
    for layers in (1, 2):
        layer = stable_linear(4, 2, layers)
        assert said(layer, "separation-linear")["value"] == 2
        assert measures.separation_rank(layer, horizon=6).rank == 2


@pytest.mark.parametrize("name", ["birnn", "cpbirnn", "2rnn", "cprnn", "mirnn"])
def test_separation_rank_of_automata(name):
    options = {} if name in ("birnn", "cpbirnn") else {"nonlinearity": "identity"}
    layer = ms.nn.create(name, input_size=3, hidden_size=2, **options)
    value = said(layer, "separation-automaton")["value"]
    assert value == (2 if name in ("birnn", "cpbirnn") else 3)
    assert measures.separation_rank(layer, horizon=6).rank <= value


def test_shallow_width_and_tensor_network():
    layer = ms.nn.RAC(3, 5, 2)
    assert said(layer, "ziv-shallow-width")["value"] == math.comb(3 + 10 - 1, 10)
    assert said(layer, "ziv-claim-4")["value"] == 4


@pytest.mark.parametrize("name", ["rac", "birnn", "cpbirnn", "2rnn", "cprnn", "mirnn"])
@pytest.mark.parametrize("layers", [1, 2])
def test_degree(name, layers):
    options = {} if name in ("rac", "birnn", "cpbirnn") else {"nonlinearity": "identity"}
    layer = ms.nn.create(name, input_size=2, hidden_size=2, num_layers=layers, **options)
    statement = said(layer, "depth-polynomial-order")
    found = measures.polynomial_degree(layer, horizon=8)
    if statement["status"] == "exact":
        assert found.degree == statement["value"]
    assert found.degree <= statement["value"] == math.comb(8 + layers - 1, layers)
    assert f"{math.comb(8 + layers - 2, layers - 1)} in the first input" in statement["text"]
    if layers == 2:
        assert (
            measures.polynomial_degree(layer, horizon=2).by_input[0] <= said(layer, "depth-theorem-3-strict")["value"]
        )


def test_zero_erases_products():
    for layer in (ms.nn.RAC(2, 3), ms.nn.BIRNN(2, 3), ms.nn.CPBIRNN(2, 3)):
        assert "zero-erases-products" in claims_about(layer)
        x = torch.randn(5, 1, 2)
        x[2] = 0
        assert not layer(x)[0][2:].any()
    assert "zero-erases-products" not in claims_about(ms.nn.BIRNN(2, 3, 2, residual=True))


def test_image_dimension_of_cpbirnn():
    layer = ms.nn.CPBIRNN(4, 5, rank=2)
    states = layer(torch.randn(1, 50, 4))[0][0].detach()
    assert said(layer, "depth-theorem-4")["value"] == int(torch.linalg.matrix_rank(states)) == 2


# State tracking --------------------------------------------------------------------------------------------------


def test_parity_is_tracked():
    layer = ms.nn.SecondOrderRNN(3, 3, nonlinearity="identity")
    for name, weight in theory.parity_weights(3).items():
        setattr(layer, name, weight)
    x = torch.randn(40, 2, 3).sign()
    torch.testing.assert_close(layer(x)[0] + 1, x.cumprod(0))
    assert said(layer, "depth-parity-linear-2rnn")["value"] == 3
    assert "depth-parity-linear-2rnn" not in claims_about(ms.nn.SecondOrderRNN(3, 2, nonlinearity="identity"))
    assert "depth-parity-linear-2rnn" not in claims_about(ms.nn.CPBIRNN(3, 4, rank=2))


@pytest.mark.parametrize("activation", ["linear", "depth"])
def test_confused_histories(activation):
    layer = stable_linear(3, 2) if activation == "linear" else ms.nn.RNN(2, 3, activation="depth", dtype=torch.float64)
    steps = int(said(layer, "depth-lemma-4")["value"])
    assert steps == 2
    U, V = layer.weight_ih_l0.detach().numpy(), layer.weight_hh_l0.detach().numpy()
    difference = theory.confused_difference(U, V, steps).astype(float)
    x = torch.randn(steps, 1, 2, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[1], layer(x + torch.from_numpy(difference)[:, None])[1])
    with pytest.raises(UserError):
        theory.confused_difference(U, V, steps - 1)


def test_state_of_an_automaton():
    assert said(ms.nn.BIRNN(2, 5), "tracking-automaton")["value"] == 5
    assert "tracking-automaton" not in claims_about(ms.nn.BIRNN(2, 5, 2))


def test_deep_linear_networks_are_wide_ones():
    layer = stable_linear(3, 2, 2)
    assert said(layer, "depth-theorem-6")["value"] == 6
    assert "6 x" not in said(layer, "depth-theorem-6")["text"]
    assert f"{6 * (6 + 2 + 1)}" in said(layer, "depth-theorem-6")["text"]


POSITIVE, MODULAR, SOLVABLE = "tracking-positive-eigenvalues", "tracking-real-eigenvalues", "tracking-solvable"
FIXED = "tracking-fixed-transitions"
DECLARED = {
    **{key: {POSITIVE, MODULAR, SOLVABLE, "recall-keys"} for key in ["gla", "hgrn2", "mamba2"]},
    **{key: {POSITIVE, MODULAR, SOLVABLE} for key in ["mamba", "mingru", "minlstm", "rglru", "mlstm"]},
    **{key: {FIXED, SOLVABLE} for key in ["lru", "s4", "s4d"]},
    "retnet": {FIXED, SOLVABLE, "recall-keys"},
    **{key: {POSITIVE, "recall-keys", "recall-delta-rule"} for key in ["deltanet", "gated-deltanet"]},
    "rwkv7": {POSITIVE, "recall-keys"},
    **{key: set() for key in ["slstm", "gru", "transformer"]},
}


@pytest.mark.parametrize("name", DECLARED)
def test_theorems_by_what_a_network_declares_of_its_transitions(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=8, num_layers=2)
    ours = {claim for claim in claims_about(layer) if claim.startswith(("tracking-", "recall-"))}
    assert ours == DECLARED[name]
    assert layer.key_size is None or said(layer, "recall-keys")["value"] == layer.key_size


def test_negative_eigenvalues_track_more():
    mamba = ms.nn.create("mamba", input_size=2, hidden_size=8, num_layers=2, negative_eigenvalues=True)
    assert POSITIVE not in claims_about(mamba)
    assert said(mamba, MODULAR)["value"] == 4
    assert said(mamba, "tracking-diagonal-layer")["value"] == 8
    delta = ms.nn.create("deltanet", input_size=2, hidden_size=10, heads=2, negative_eigenvalues=True)
    assert "(the group S_5)" in said(delta, "tracking-reflections")["text"]
    assert POSITIVE not in claims_about(delta)


@pytest.mark.parametrize("name", ["gla", "mamba", "mingru", "minlstm", "rglru", "mlstm", "deltanet", "hgrn2", "mamba2"])
def test_transitions_are_what_is_declared(name):
    """Eigenvalues of the state Jacobian at random states and inputs: real, and not negative."""
    layer = ms.nn.create(name, input_size=2, hidden_size=4, dtype=torch.float64)
    state = layer(torch.randn(5, 1, 2, dtype=torch.float64))[1]
    flat = layer.flatten_state(state)[0]

    def after(h, x):
        return layer.flatten_state(layer.step(x, layer.unflatten_state(h[None]))[1])[0]

    for _ in range(5):
        x = 3 * torch.randn(1, 2, dtype=torch.float64)
        values = torch.linalg.eigvals(torch.func.jacrev(after)(flat, x))
        assert values.imag.abs().max() < 1e-9
        assert values.real.min() > -1e-9


def test_negative_eigenvalues_of_rwkv7_fade():
    """However its weights are drawn: real, above -0.455, and some of them negative."""
    layer = ms.nn.create("rwkv7", input_size=2, hidden_size=4, heads=1, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for weight in layer.parameters():
        weight.data += 3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    found = measures.tracking_gate(layer, scale=3.0)
    assert -0.455 < found.least < -0.2
    assert found.imaginary < 1e-6
    assert found.radius < 1
    assert {(each.theorem, each.holds) for each in found.excluded} == {(POSITIVE, "for all weights")}


# Others ----------------------------------------------------------------------------------------------------------


def test_ranges_of_gated_states():
    x = 50 * torch.randn(30, 4, 2)
    lstm = ms.nn.LSTM(2, 5)
    assert said(lstm, "state-lstm")["status"] == "bound"
    h, c = lstm(x)[1]
    assert h.abs().max() <= 1
    assert c.abs().max() <= 30
    for layer in (ms.nn.GRU(2, 5), ms.nn.RNN(2, 5), nn.GRU(2, 5), nn.RNNCell(2, 5)):
        assert "state-range" in claims_about(layer)
    assert ms.nn.GRU(2, 5)(x)[0].abs().max() <= 1
    assert "state-range" not in claims_about(ms.nn.IRNN(2, 5))


@pytest.mark.parametrize(("n", "r", "d"), [(3, 2, 6), (2, 3, 4)])
def test_classifiers(n, r, d):
    layer = ms.nn.TT(n, r, d, 1, dtype=torch.float64)
    generic = said(layer, "tt-generic-rank")["value"]
    bound = said(layer, "tt-theorem-1")["value"]
    cores = [torch.randn(*core.shape).numpy() for core in theory.attaining_cores(n, r, d)]
    assert bound <= measures.odd_even_rank(cores).rank == generic
    attained = measures.odd_even_rank(theory.attaining_cores(n, r, d)).rank
    assert said(layer, "tt-construction")["value"] == attained
    assert "tt-theorem-1" not in claims_about(ms.nn.TT(n, r, d + 1, 1))
    assert said(ms.nn.CP(n, r, d, 1), "tt-lemma-2")["value"] == r


def test_a_strangers_network():
    class Leaky(nn.Module):
        """Linear, which nobody says."""

        def __init__(self):
            super().__init__()
            self.enter = nn.Linear(2, 4)

        def forward(self, x, h):
            return 0.5 * h + self.enter(x)

    found = ms.adapt(Leaky(), kind="cell", input_size=2, init_state=lambda batch: torch.zeros(batch, 4))
    assert NetworkView(found).linear
    assert said(found, "lyapunov-eigenvalues")["value"] == pytest.approx(math.log(0.5))
    assert said(found, "separation-linear")["value"] == 2
    assert claims_about(nn.LSTM(2, 3)) == claims_about(ms.nn.LSTM(2, 3))
    assert claims_about(nn.RNN(2, 3)) == claims_about(ms.nn.RNN(2, 3))


def test_a_sequence_network_has_no_theorems_of_states():
    class Block(nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    assert statements(ms.adapt(Block(), kind="sequence", input_size=2)) == []


def test_attention_grows_as_the_corrected_law():
    class Attentive(ms.nn.RNN):
        card = ms.nn.Card("attentive", "attention", ("s = h + c",), "n", ("kerg2020",))

    layer = Attentive(1, 1)
    layer.weight_hh_l0 = torch.tensor([[0.8]])
    value = said(layer, "kerg-uniform-attention-growth")["value"]
    curve = np.abs(theory.uniform_attention_gradient(0.8, 4001))
    assert value == pytest.approx(math.log2(curve[4000] / curve[2000]), abs=0.02)
