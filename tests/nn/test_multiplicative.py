"""Networks with products of state and input: their equations by explicit loops, and the same numbers in every ring."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime, Real, Symbolic

T, B, D, N, R, C = 5, 3, 4, 6, 5, 2
BENT = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0), "identity": lambda z: z}


def make(name, *, layers=2, d=D, n=N, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return ms.nn.create(
        name, input_size=d, hidden_size=n, num_layers=layers, dtype=torch.float64, generator=generator, **options
    )


def inputs(*, time=T, batch=B, d=D, seed=0):
    return np.random.default_rng(seed).standard_normal((time, batch, d))


def numpy_weights(layer):
    return {name: p.detach().numpy() for name, p in layer.named_parameters()}


# One step of one example, entry by entry ----------------------------------------------------------------------------


def rac_step(w, s, x, **_):
    n, d = w["weight_ih"].shape
    h = [s[k] * sum(w["weight_ih"][k, j] * x[j] for j in range(d)) for k in range(n)]
    return np.array(h), np.array([sum(w["weight_hh"][k, j] * h[j] for j in range(n)) for k in range(n)])


def mirnn_step(w, h, x, phi, **_):
    vh, ux = w["weight_hh"] @ h, w["weight_ih"] @ x
    z = w["alpha"] * vh * ux + w["beta_h"] * vh + w["beta_x"] * ux + w.get("bias", 0)
    return (BENT[phi](z),) * 2


def tensor_product(a, h, x):
    n, d, m = a.shape
    return np.array([sum(a[i, j, k] * h[i] * x[j] for i in range(n) for j in range(d)) for k in range(m)])


def cp_tensor(w):
    return np.einsum("ir,jr,kr->ijk", w["weight_a"], w["weight_b"], w["weight_c"])


def second_order_step(w, h, x, phi, **_):
    a = w["weight_bilinear"] if "weight_bilinear" in w else cp_tensor(w)
    z = tensor_product(a, h, x) + w["weight_hh"] @ h + w["weight_ih"] @ x + w.get("bias", 0)
    return (BENT[phi](z),) * 2


def bilinear_step(w, h, x, residual, **_):
    a = w["weight_bilinear"] if "weight_bilinear" in w else cp_tensor(w)
    return (tensor_product(a, h, x) + (x if residual else 0),) * 2


STEPS = {
    "rac": rac_step,
    "mirnn": mirnn_step,
    "2rnn": second_order_step,
    "cprnn": second_order_step,
    "birnn": bilinear_step,
    "cpbirnn": bilinear_step,
}
START = {"rac": 1.0, "birnn": 1.0, "cpbirnn": 1.0, "mirnn": 0.0, "2rnn": 0.0, "cprnn": 0.0}


def by_hand(name, layer, x):
    """Return outputs and last states, one example and one entry at a time."""
    named = numpy_weights(layer)
    states, outputs = np.empty((layer.num_layers, x.shape[1], layer.hidden_size)), []
    for b in range(x.shape[1]):
        y = x[:, b]
        for k in range(layer.num_layers):
            w = {key.removesuffix(f"_l{k}"): value for key, value in named.items() if key.endswith(f"_l{k}")}
            state = w.get("initial", np.full(layer.hidden_size, START[name]))
            residual, steps = getattr(layer, "residual", False) and k > 0, []
            for x_t in y:
                h, state = STEPS[name](w, state, x_t, phi=layer.nonlinearity, residual=residual)
                steps.append(h)
            y = np.array(steps)
            states[k, b] = state
        outputs.append(y @ named["weight_out"].T if "weight_out" in named else y)
    return np.stack(outputs, 1), states


EQUATIONS = [
    ("rac", {}),
    ("rac", {"output_size": C}),
    ("rac", {"output_size": C, "learn_initial": True, "init": "one-hot"}),
    ("mirnn", {}),
    ("mirnn", {"nonlinearity": "relu"}),
    ("mirnn", {"nonlinearity": "identity", "bias": False}),
    ("2rnn", {}),
    ("2rnn", {"nonlinearity": "identity"}),
    ("2rnn", {"nonlinearity": "relu", "bias": False}),
    ("cprnn", {"rank": R}),
    ("cprnn", {"nonlinearity": "identity", "rank": 1}),
    ("birnn", {}),
    ("birnn", {"residual": True, "learn_initial": True}),
    ("birnn", {"output_size": C}),
    ("cpbirnn", {"rank": R}),
    ("cpbirnn", {"residual": True, "output_size": C, "learn_initial": True}),
]
IDS = [f"{name}-{'-'.join(map(str, options))}" for name, options in EQUATIONS]


def shaken(layer):
    """Move every parameter off its starting value, the constant ones too."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.3 * torch.randn(p.shape, dtype=p.dtype, generator=generator))
    return layer


@pytest.mark.parametrize(("name", "options"), EQUATIONS, ids=IDS)
def test_equations_by_explicit_loops(name, options):
    layer, x = shaken(make(name, **options)), inputs()
    y, state = layer(torch.tensor(x))
    wanted, last = by_hand(name, layer, x)
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.detach(), wanted, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(state.detach(), last, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["mirnn", "2rnn", "cprnn"])
def test_modrelu_has_its_own_bias_and_no_other(name):
    layer, x = shaken(make(name, layers=1, nonlinearity="modrelu")), inputs(time=1)
    linear = make(name, layers=1, nonlinearity="identity")
    linear.load_state_dict(layer.state_dict())
    linear.bias_l0 = torch.zeros(N)
    z, bias = linear(torch.tensor(x))[0].detach(), layer.bias_l0.detach()
    assert torch.allclose(layer(torch.tensor(x))[0], torch.sign(z) * torch.relu(z.abs() + bias))


@pytest.mark.parametrize("name", ["rac", "birnn", "cpbirnn"])
def test_both_directions_have_their_own_readout(name):
    layer = shaken(make(name, output_size=C, bidirectional=True))
    assert layer.output_size == 2 * C
    assert layer.weight_out.shape == layer.weight_out_reverse.shape == (C, N)
    assert layer.weight_ih_l1.shape == (N, 2 * N) if name == "rac" else True
    y, _ = layer(torch.tensor(inputs()))
    plain = make(name, bidirectional=True)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if "out" not in k})
    h, _ = plain(torch.tensor(inputs()))
    halves = (h[..., :N] @ layer.weight_out.T, h[..., N:] @ layer.weight_out_reverse.T)
    assert torch.allclose(y, torch.cat(halves, -1))


def test_a_residual_connection_in_two_directions_adds_the_sum_of_both():
    layer = make("birnn", bidirectional=True, residual=True)
    for name in ("weight_bilinear_l1", "weight_bilinear_l1_reverse"):
        setattr(layer, name, torch.zeros(N, 2 * N, N))
    below = make("birnn", layers=1, bidirectional=True)
    below.load_state_dict({k: v for k, v in layer.state_dict().items() if "_l0" in k})
    x = torch.tensor(inputs())
    h, _ = below(x)
    total = h[..., :N] + h[..., N:]
    assert torch.allclose(layer(x)[0], torch.cat([total, total], -1))


def test_a_residual_layer_can_pass_on_what_lies_below():
    """Theorem 3 of Depth needs it: with A = 0 above, L + 1 layers are L layers."""
    deep, shallow = make("birnn", layers=3, residual=True), make("birnn", layers=2, residual=True)
    deep.weight_bilinear_l2 = torch.zeros(N, N, N)
    shallow.load_state_dict({k: v for k, v in deep.state_dict().items() if "_l2" not in k})
    x = torch.tensor(inputs())
    assert torch.equal(deep(x)[0], shallow(x)[0])
    plain = make("birnn", layers=3)
    plain.load_state_dict(deep.state_dict())
    assert not plain(x)[0].any()


def test_special_cases_of_each_other():
    x = torch.tensor(inputs())
    elman, mirnn = make("rnn"), make("mirnn")
    for k in range(2):
        for name in ("weight_ih", "weight_hh", "bias"):
            setattr(mirnn, f"{name}_l{k}", getattr(elman, f"{name}_l{k}").detach())
        for name, value in (("alpha", 0.0), ("beta_h", 1.0), ("beta_x", 1.0)):
            setattr(mirnn, f"{name}_l{k}", torch.full((N,), value))
    assert torch.allclose(mirnn(x)[0], elman(x)[0])
    second, cp = make("2rnn", layers=1), make("cprnn", layers=1, rank=R)
    rest = {k: v for k, v in cp.state_dict().items() if k in second.state_dict()}
    full = torch.einsum("ir,jr,kr->ijk", cp.weight_a_l0, cp.weight_b_l0, cp.weight_c_l0)
    second.load_state_dict(rest | {"weight_bilinear_l0": full})
    assert torch.allclose(second(x)[0], cp(x)[0])
    # A RAC is a cpbirnn with A = W_H^T, B = W_I^T, C = I, but for the first product.
    rac, cpbirnn = make("rac", layers=1), make("cpbirnn", layers=1, rank=N)
    cpbirnn.weight_a_l0, cpbirnn.weight_b_l0 = rac.weight_hh_l0.T, rac.weight_ih_l0.T
    cpbirnn.weight_c_l0 = torch.eye(N)
    h_1 = rac(x[:1])[0]
    assert torch.allclose(cpbirnn(x[1:], h_1)[0], rac(x)[0][1:])


# Weights and states -------------------------------------------------------------------------------------------------


def test_rac_has_the_names_and_shapes_that_others_rely_on():
    layer = ms.nn.RAC(D, R, num_layers=3, output_size=C)
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == {
        "weight_ih_l0": (R, D),
        "weight_ih_l1": (R, R),
        "weight_ih_l2": (R, R),
        **{f"weight_hh_l{k}": (R, R) for k in range(3)},
        "weight_out": (C, R),
    }
    assert (layer.output_size, layer.options["output_size"], ms.nn.RAC(D, R).output_size) == (C, C, R)
    assert repr(layer) == f"RAC({D}, {R}, num_layers=3, output_size={C})"
    assert torch.equal(layer.init_state(2), torch.ones(3, 2, R))
    with torch.no_grad():
        layer.weight_out = torch.ones(C, R)
    assert torch.equal(layer.weight_out, torch.ones(C, R))


def test_rac_starts_without_a_preimage_of_ones():
    layer = make("rac", layers=1)
    layer.weight_hh_l0 = torch.zeros(N, N)  # no h_0 has W_H h_0 = 1
    x = torch.tensor(inputs())
    y, _ = layer(x)
    assert torch.allclose(y[0], x[0] @ layer.weight_ih_l0.T)
    assert not y[1:].any()


@pytest.mark.parametrize("name", ["birnn", "cpbirnn", "rac"])
def test_the_initial_state_is_learned_where_it_is_asked_for(name):
    layer = make(name, learn_initial=True)
    assert torch.equal(layer.init_state(B), torch.ones(2, B, N, dtype=torch.float64))
    layer(torch.tensor(inputs()))[0].sum().backward()
    assert layer.initial_l0.grad.abs().min() > 0
    layer.initial_l1 = torch.arange(float(N))
    assert torch.equal(layer.init_state(B)[1], torch.arange(float(N), dtype=torch.float64).expand(B, N))
    assert not hasattr(make(name), "initial_l0")


def test_parameters_are_those_of_the_formulas():
    def count(name, **options):
        return sum(p.numel() for p in make(name, **options).parameters())

    first = 2 * N * N + N * D + N * N + 2 * N  # U, V and b of two layers
    assert count("rac") == first - 2 * N
    assert count("mirnn") == first + 6 * N
    assert count("2rnn") == first + N * D * N + N**3
    assert count("birnn") == N * D * N + N**3
    assert count("cprnn", rank=R) == first + R * (5 * N + D)
    assert count("cpbirnn", rank=R) == R * (5 * N + D)


@pytest.mark.parametrize(("init", "make_input"), [("dense", "dense"), ("one-hot", "one-hot")])
def test_rac_keeps_its_size_over_time(init, make_input):
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.RAC(16, 256, init=init, generator=generator)
    if make_input == "dense":
        x = torch.randn(50, 64, 16, generator=generator)
    else:
        x = torch.nn.functional.one_hot(torch.randint(16, (50, 64), generator=generator), 16).float()
    size = layer(x)[0].square().mean((1, 2))
    assert size.min() > 0.01
    assert size.max() < 100


@pytest.mark.parametrize("name", ["mirnn", "2rnn", "cprnn", "birnn", "cpbirnn"])
def test_weights_start_between_plus_and_minus_one_over_root_n(name):
    layer = make(name, n=64)
    drawn = {k: p for k, p in layer.named_parameters() if k.startswith(("weight", "bias"))}
    for p in drawn.values():
        assert p.abs().max() <= 1 / 8
        assert p.abs().max() > 0.9 / 8


# Rings ---------------------------------------------------------------------------------------------------------------

POLYNOMIAL = [
    ("rac", {}),
    ("rac", {"output_size": C, "learn_initial": True}),
    ("mirnn", {"nonlinearity": "identity"}),
    ("mirnn", {"nonlinearity": "identity", "bias": False}),
    ("2rnn", {"nonlinearity": "identity"}),
    ("cprnn", {"nonlinearity": "identity", "rank": 2}),
    ("birnn", {}),
    ("birnn", {"residual": True, "output_size": C, "learn_initial": True}),
    ("cpbirnn", {"rank": 3, "residual": True}),
    ("linear-rnn", {}),
    ("linear-rnn", {"bias": False}),
]
POLYNOMIAL_IDS = [f"{name}-{'-'.join(map(str, options))}" for name, options in POLYNOMIAL]


@pytest.mark.parametrize(("name", "options"), POLYNOMIAL, ids=POLYNOMIAL_IDS)
def test_floats_in_a_ring_are_the_forward_pass(name, options):
    layer, x, ring = shaken(make(name, layers=3, **options)), inputs(), Real()
    assert layer.polynomial
    found, state = layer.evaluate(ring, layer.exact_weights(ring), x)
    y, hx = layer(torch.tensor(x))
    np.testing.assert_allclose(found, y.detach(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.stack(state), hx.detach(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("name", "options"), POLYNOMIAL, ids=POLYNOMIAL_IDS)
def test_residues_are_those_of_the_exact_value(name, options):
    """Fractions through SymPy's numbers, then modulo p, against residues all the way."""
    layer, x = shaken(make(name, d=2, n=2, **options)).float(), inputs(time=3, batch=2, d=2).round(1)
    exact, field = Symbolic(), Prime(PRIMES[0])
    rational, _ = layer.evaluate(exact, layer.exact_weights(exact), exact.array(x))
    residues, _ = layer.evaluate(field, layer.exact_weights(field), field.array(x))
    wanted = [int(r.p) * pow(int(r.q), -1, field.p) % field.p for r in rational.ravel()]
    assert residues.ravel().tolist() == wanted
    single = layer.double()(torch.tensor(x))[0].detach().numpy()
    np.testing.assert_allclose(rational.astype(float), single, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), POLYNOMIAL, ids=POLYNOMIAL_IDS)
def test_sequences_share_a_beginning(name, options):
    layer, field = make(name, **options), Prime(PRIMES[1])
    weights, x = layer.exact_weights(field), field.array(inputs(time=4, batch=2))
    _, state = layer.evaluate(field, weights, x[:2])
    repeated = tuple(cell[np.array([0, 0, 1, 1])] for cell in state)
    ends = x[2:][:, np.array([0, 1, 0, 1])]
    shared, _ = layer.evaluate(field, weights, ends, repeated)
    whole = np.concatenate([x[:2][:, np.array([0, 0, 1, 1])], ends])
    wanted, _ = layer.evaluate(field, weights, whole)
    assert np.array_equal(shared, wanted[2:])


@given(values=st.lists(st.integers(-3, 3), min_size=6, max_size=6), scale=st.integers(2, 7))
@settings(max_examples=20, deadline=None)
def test_a_rac_is_homogeneous_of_degree_one_in_every_input(values, scale):
    layer, exact = make("rac", layers=1, d=2, n=2), Symbolic()
    x = np.array(values, dtype=np.int64).reshape(3, 1, 2)
    weights = layer.exact_weights(exact)
    y, _ = layer.evaluate(exact, weights, exact.array(x))
    x[1] *= scale
    z, _ = layer.evaluate(exact, weights, exact.array(x))
    assert (z[2] == scale * y[2]).all()


def test_symbols_go_through():
    import sympy

    layer, exact = ms.nn.BIRNN(1, 1, num_layers=2), Symbolic()
    layer.weight_bilinear_l0, layer.weight_bilinear_l1 = torch.ones(1, 1, 1), torch.ones(1, 1, 1)
    x = np.array(sympy.symbols("x1:4"), dtype=object).reshape(3, 1, 1)
    y, _ = layer.evaluate(exact, layer.exact_weights(exact), x)
    assert sympy.expand(y[2, 0, 0]) == sympy.sympify("x1**3 * x2**2 * x3")


def test_weights_are_the_exact_values_of_floats():
    layer = make("rac", layers=1)
    layer.weight_ih_l0 = torch.full((N, D), 0.1, dtype=torch.float64)
    entry = layer.exact_weights(Symbolic())["weight_ih_l0"][0, 0]
    assert Fraction(int(entry.p), int(entry.q)) == Fraction(0.1)
    assert set(layer.exact_weights(Real())) == dict(layer.named_parameters()).keys()


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.nn.RAC(3, 4, output_size=0), "output_size must be a positive integer, got 0"),
        (lambda: ms.nn.RAC(3, 4, init="onehot"), "init must be 'dense' or 'one-hot', got 'onehot'; did you mean"),
        (lambda: ms.nn.BIRNN(3, 4, residual=1), "residual must be True or False, got 1"),
        (lambda: ms.nn.BIRNN(3, 4, learn_initial="yes"), "learn_initial must be True or False, got 'yes'"),
        (lambda: ms.nn.CPRNN(3, 4, rank=0), "rank must be a positive integer, got 0"),
        (lambda: ms.nn.CPBIRNN(3, 4, rank=-2), "rank must be a positive integer, got -2"),
        (lambda: ms.nn.MIRNN(3, 4, nonlinearity="tan"), "nonlinearity must be 'tanh' or"),
        (lambda: ms.nn.RAC(3, 4, learn_inital=True), "RAC has no option 'learn_inital'; did you mean 'learn_initial'?"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def evaluate(layer, shape=(2, 1, 3)):
    ring = Real()
    return layer.evaluate(ring, layer.exact_weights(ring), np.zeros(shape))


def poisoned():
    layer = ms.nn.RAC(3, 4)
    layer.weight_hh_l0 = torch.full((4, 4), float("nan"))
    return layer


def test_2rnn_keeps_its_size_where_its_tensor_starts_by_fan_in():
    signs = torch.sign(torch.randn(20, 200, 5, generator=torch.Generator().manual_seed(1)))
    sizes = {}
    for init in ("uniform", "fan-in"):
        layers = [make("2rnn", layers=1, d=5, n=5, seed=seed, nonlinearity="identity", init=init) for seed in range(8)]
        with torch.no_grad():
            sizes[init] = [float(layer(signs.double())[0][-1].square().mean()) for layer in layers]
        bound = {"uniform": 5, "fan-in": 25}[init] ** -0.5
        assert 0.9 * bound < max(float(layer.weight_bilinear_l0.detach().abs().max()) for layer in layers) < bound
    assert max(sizes["fan-in"]) < 10 < 100 < min(sizes["uniform"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make("2rnn", init="orthogonal"), "init must be 'uniform' or 'fan-in'"),
        (
            lambda: evaluate(ms.nn.MIRNN(3, 4)),
            "evaluate needs a polynomial network, and the nonlinearity 'tanh' is none",
        ),
        (lambda: evaluate(ms.nn.RAC(3, 4, bidirectional=True)), "evaluate needs a causal network, and this one is not"),
        (lambda: evaluate(ms.nn.RAC(3, 4), (2, 3)), "inputs must be of shape (time, batch, 3)"),
        (lambda: evaluate(ms.nn.RAC(3, 4), (2, 1, 5)), "inputs must be of shape (time, batch, 3)"),
        (lambda: evaluate(ms.nn.RAC(3, 4), (0, 1, 3)), "inputs must be of shape (time, batch, 3)"),
        (lambda: evaluate(poisoned()), "weight_hh_l0 must be finite in every entry, got NaN or infinity"),
    ],
)
def test_what_cannot_be_evaluated(call, message):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)
