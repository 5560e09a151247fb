"""Every first-order network's forward pass against a loop of its printed equation, written from its weights.

Sources: CATALOGUE 1.1, DESIGN 2 (names of weights), ERRATA (Linear RNNs, Eq. 2). The loops use NumPy only.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms

TOLERANCE = 1e-12
NONLINEARITIES = ["tanh", "relu", "modrelu", "identity"]
ACTIVATIONS = ["recurrent", "depth"]

REAL = [
    ("rnn", {}),
    ("irnn", {}),
    ("orth-rnn", {}),
    ("ornn", {}),
    ("ornn", {"reflections": 2}),
    ("eurnn", {}),
    ("eurnn", {"rotations": 2}),
    ("scornn", {}),
    ("scornn", {"negative": 1}),
    ("exprnn", {}),
    ("exprnn", {"rebase": 3}),
    ("full-urnn", {}),
    ("soft-orth", {}),
    ("soft-orth", {"mode": "penalty"}),
    ("nnrnn", {"block": "rotation"}),
    ("nnrnn", {"block": "balanced"}),
    ("nnrnn", {"block": "published"}),
]
COMPLEX = [
    ("urnn", {}),
    ("urnn", {"product": "structured"}),
    ("scurnn", {}),
    ("full-urnn", {"field": "complex"}),
    ("exprnn", {"field": "complex"}),
]
ids = [f"{name}-{'-'.join(map(str, options.values()))}".rstrip("-") for name, options in REAL + COMPLEX]


def make(name, seed=0, *, input_size=3, hidden_size=6, num_layers=2, dtype=torch.float64, **options):
    """A network with every parameter away from its initial value, so that no term vanishes by accident."""
    generator = torch.Generator().manual_seed(seed)
    layer = ms.nn.create(
        name,
        input_size=input_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        dtype=dtype,
        generator=generator,
        **options,
    )
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return layer


def draw(seed, *shape, is_complex=False):
    dtype = torch.complex128 if is_complex else torch.float64
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def array(tensor):
    return tensor.detach().numpy()


def modrelu(z, b):
    """sign(z) relu(|z| + b), sign(0) = 0, entry by entry."""
    result = np.zeros_like(z)
    for index, entry in np.ndenumerate(z):
        modulus = abs(entry)
        if modulus > 0:
            result[index] = entry / modulus * max(modulus + b[index[-1]], 0.0)
    return result


def split(function, z):
    """On the real and the imaginary part, for complex numbers."""
    return function(z.real) + 1j * function(z.imag) if np.iscomplexobj(z) else function(z)


def phi(name, z, b):
    if name == "modrelu":
        return modrelu(z, b)
    return {
        "tanh": lambda: split(np.tanh, z),
        "relu": lambda: split(lambda u: np.maximum(u, 0.0), z),
        "identity": lambda: z,
    }[name]()


def complexify(stacked, axis=0):
    """[Re; Im] -> Re + i Im."""
    real, imaginary = np.split(stacked, 2, axis=axis)
    return real + 1j * imaginary


def hand_loop(layer, x, h0, nonlinearity, activation="recurrent", form="elman", suffix=""):
    """Outputs (T, B, n or 2n) and final states (L, B, n) from the printed equation, one step after the other."""
    y, finals = np.asarray(x), []
    for k in range(layer.num_layers):
        U, V, b = (array(getattr(layer, f"{name}_l{k}{suffix}")) for name in ("weight_ih", "weight_hh", "bias"))
        is_complex = np.iscomplexobj(V)
        additive = 0.0 if nonlinearity == "modrelu" else b
        if is_complex:
            U = complexify(U)
            additive = 0.0 if nonlinearity == "modrelu" else complexify(b)
        h, outputs = h0[k], []
        for x_t in y:
            if form == "henaff":
                h = phi(nonlinearity, x_t @ U.T + additive, b) + h @ V.T
                out = h
            elif activation == "recurrent":
                h = phi(nonlinearity, h @ V.T + x_t @ U.T + additive, b)
                out = h
            else:
                h = h @ V.T + x_t @ U.T + additive
                out = phi(nonlinearity, h, b)
            outputs.append(np.concatenate([out.real, out.imag], axis=-1) if is_complex else out)
        y = np.stack(outputs)
        finals.append(h)
    return y, np.stack(finals)


def check(layer, nonlinearity, activation="recurrent", form="elman", seed=5, time=7, batch=4):
    n, is_complex = layer.hidden_size, layer.weight_hh_l0.is_complex()
    x = draw(seed, time, batch, layer.input_size)
    h0 = draw(seed + 1, layer.num_layers, batch, n, is_complex=is_complex)
    output, final = layer(x, h0)
    expected_output, expected_final = hand_loop(layer, array(x), array(h0), nonlinearity, activation, form)
    assert output.shape == expected_output.shape
    assert not output.is_complex()
    assert final.is_complex() == is_complex
    np.testing.assert_allclose(
        array(output), expected_output, rtol=0, atol=TOLERANCE * (1 + abs(expected_output).max())
    )
    np.testing.assert_allclose(array(final), expected_final, rtol=0, atol=TOLERANCE * (1 + abs(expected_final).max()))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
@pytest.mark.parametrize(("name", "options"), REAL + COMPLEX, ids=ids)
def test_forward_is_the_printed_equation(name, options, nonlinearity, activation):
    layer = make(name, nonlinearity=nonlinearity, activation=activation, **options)
    check(layer, nonlinearity, activation)


@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
def test_henaff_applies_phi_to_the_input_alone(nonlinearity):
    check(make("henaff", nonlinearity=nonlinearity), nonlinearity, form="henaff")


def test_linear_rnn_is_linear():
    check(make("linear-rnn"), "identity")


@pytest.mark.parametrize(
    ("name", "default"),
    [("rnn", "tanh"), ("orth-rnn", "tanh"), ("irnn", "relu")]
    + [
        (name, "modrelu")
        for name in ("ornn", "eurnn", "urnn", "full-urnn", "scurnn", "scornn", "exprnn", "soft-orth", "nnrnn")
    ],
)
def test_default_nonlinearity(name, default):
    check(make(name), default)


def test_default_nonlinearity_of_henaff_is_relu():
    check(make("henaff"), "relu", form="henaff")


@pytest.mark.parametrize(("name", "options"), REAL + COMPLEX, ids=ids)
def test_state_starts_at_zero(name, options):
    layer = make(name, **options)
    x = draw(1, 5, 2, 3)
    zero = torch.zeros(2, 2, 6, dtype=layer.weight_hh_l0.dtype)
    for given_nothing, given_zero in zip(layer(x), layer(x, zero), strict=True):
        assert torch.equal(given_nothing, given_zero)


def test_depth_activation_state_is_linear_and_output_is_phi_of_it():
    """ERRATA, Eq. 2: y^0 = x, h^l = V h^l + U y^(l-1) + b, y^l = phi(h^l): the last output is phi of the state."""
    layer = make("rnn", activation="depth", nonlinearity="tanh")
    output, final = layer(draw(0, 7, 4, 3) * 5)
    torch.testing.assert_close(output[-1], torch.tanh(final[-1]), rtol=0, atol=1e-15)
    assert final.abs().max() > 1  # not squashed


@settings(max_examples=40, deadline=None)
@given(
    case=st.sampled_from(REAL[:1] + REAL[5:6] + REAL[7:8] + REAL[9:10] + REAL[14:16] + COMPLEX),
    n=st.integers(1, 7),
    d=st.integers(1, 4),
    layers=st.integers(1, 3),
    time=st.integers(1, 6),
    batch=st.integers(1, 3),
    activation=st.sampled_from(ACTIVATIONS),
    seed=st.integers(0, 100),
)
def test_forward_is_the_printed_equation_at_any_size(case, n, d, layers, time, batch, activation, seed):
    name, options = case
    layer = make(
        name,
        seed,
        input_size=d,
        hidden_size=n,
        num_layers=layers,
        nonlinearity="modrelu",
        activation=activation,
        **options,
    )
    check(layer, "modrelu", activation, seed=seed, time=time, batch=batch)


@pytest.mark.parametrize(("name", "options"), [REAL[0], REAL[9], COMPLEX[2]])
def test_reverse_direction_reads_the_sequence_backwards(name, options):
    layer = make(name, num_layers=1, bidirectional=True, nonlinearity="modrelu", **options)
    is_complex = layer.weight_hh_l0.is_complex()
    x, h0 = draw(0, 7, 4, 3), draw(1, 2, 4, 6, is_complex=is_complex)
    output, final = layer(x, h0)
    ahead, ahead_final = hand_loop(layer, array(x), array(h0)[:1], "modrelu")
    back, back_final = hand_loop(layer, array(x)[::-1], array(h0)[1:], "modrelu", suffix="_reverse")
    np.testing.assert_allclose(array(output), np.concatenate([ahead, back[::-1]], axis=-1), rtol=0, atol=1e-11)
    np.testing.assert_allclose(array(final), np.concatenate([ahead_final, back_final]), rtol=0, atol=1e-11)


# torch's own network -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_rnn_equals_torch_rnn_with_the_same_weights(nonlinearity, bidirectional):
    """Outputs, final state, and the gradients of input, state and weights."""
    layer = make("rnn", nonlinearity=nonlinearity, bidirectional=bidirectional)
    oracle = torch.nn.RNN(3, 6, 2, nonlinearity=nonlinearity, bidirectional=bidirectional, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in oracle.named_parameters():
            if name.startswith("bias_hh"):
                parameter.zero_()
            else:
                parameter.copy_(getattr(layer, name.replace("bias_ih", "bias")))
    results = []
    for module in (layer, oracle):
        x, h0 = draw(0, 7, 4, 3).requires_grad_(), draw(1, 4 if bidirectional else 2, 4, 6).requires_grad_()
        output, final = module(x, h0)
        ((output * draw(2, *output.shape)).sum() + (final * draw(3, *final.shape)).sum()).backward()
        results.append((output, final, x.grad, h0.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    for name, parameter in oracle.named_parameters():
        if not name.startswith("bias_hh"):
            ours = getattr(layer, name.replace("bias_ih", "bias")).grad
            torch.testing.assert_close(ours, parameter.grad, rtol=1e-10, atol=1e-12)


# modReLU -------------------------------------------------------------------------------------------------------------


def first_step(bias, z):
    """phi(z) of a real network: U = I, one step from zero."""
    n = len(z)
    layer = make("rnn", input_size=n, hidden_size=n, num_layers=1, nonlinearity="modrelu")
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.eye(n))
        layer.bias_l0.copy_(torch.as_tensor(bias))
    x = torch.as_tensor(z, dtype=torch.float64).reshape(1, 1, n).requires_grad_()
    return layer, x, layer(x)[0].flatten()


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (0.5, [-2.5, -0.6, 0.0, 0.6, 2.5]),
        (-0.5, [-1.5, 0.0, 0.0, 0.0, 1.5]),
        (0.0, [-2.0, -0.1, 0.0, 0.1, 2.0]),
    ],
)
def test_modrelu_on_real_numbers(bias, expected):
    _, x, y = first_step([bias] * 5, [-2.0, -0.1, 0.0, 0.1, 2.0])
    np.testing.assert_allclose(array(y), expected, rtol=0, atol=1e-15)
    y.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_modrelu_has_one_bias_per_unit():
    _, _, y = first_step([0.5, -0.5, -3.0], [1.0, 1.0, -2.0])
    np.testing.assert_allclose(array(y), [1.5, 0.5, 0.0], rtol=0, atol=1e-15)


def test_modrelu_gradient_away_from_the_threshold():
    """d/dz is 1 where |z| + b > 0, else 0; d/db is sign(z) there."""
    layer, x, y = first_step([-0.5] * 4, [-2.0, -0.1, 0.1, 2.0])
    y.sum().backward()
    np.testing.assert_allclose(array(x.grad).ravel(), [1, 0, 0, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(array(layer.bias_l0.grad), [-1, 0, 0, 1], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("bias", "z", "expected"),
    [
        (-1.0, 3 + 4j, 2.4 + 3.2j),
        (1.0, 3 - 4j, 3.6 - 4.8j),
        (-6.0, 3 + 4j, 0),
        (-5.0, 3 + 4j, 0),
        (1.0, 0, 0),
        (-1.0, 0, 0),
        (0.0, 0, 0),
        (0.0, -1 + 1j, -1 + 1j),
    ],
)
@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=ids[len(REAL) :])
def test_modrelu_on_complex_numbers(name, options, bias, z, expected):
    layer = make(name, input_size=2, hidden_size=1, num_layers=1, nonlinearity="modrelu", **options)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.eye(2))  # rows [Re; Im]
        layer.bias_l0.fill_(bias)
    x = torch.tensor([[[complex(z).real, complex(z).imag]]], dtype=torch.float64, requires_grad=True)
    output, final = layer(x)
    np.testing.assert_allclose(array(output).ravel(), [complex(expected).real, complex(expected).imag], atol=1e-14)
    np.testing.assert_allclose(array(final).ravel(), [complex(expected)], atol=1e-14)
    output.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters() if p.grad is not None)


def test_modrelu_without_bias_is_the_identity():
    layer = make("exprnn", num_layers=1, bias=False)
    reference = make("exprnn", num_layers=1, nonlinearity="identity")
    with torch.no_grad():
        for k in ("weight_ih_l0", "bias_l0"):
            getattr(reference, k).copy_(layer.weight_ih_l0 if k == "weight_ih_l0" else torch.zeros(6))
    reference.weight_hh_l0 = layer.weight_hh_l0.detach()
    x = draw(0, 7, 4, 3)
    torch.testing.assert_close(layer(x)[0], reference(x)[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["ornn", "eurnn", "urnn", "full-urnn", "scurnn", "scornn", "exprnn", "nnrnn", "goru"])
def test_modrelu_bias_starts_uniform_within_a_hundredth(name):
    """DETAILS: modReLU bias ~ U(-0.01, 0.01); 200 draws fill the interval to within 0.002 and have its variance."""
    layer = ms.nn.create(name, input_size=2, hidden_size=200, generator=torch.Generator().manual_seed(0))
    bias = array(layer.bias_l0)
    assert bias.shape == (200,)
    assert abs(bias).max() <= 0.01
    assert bias.min() < -0.008
    assert bias.max() > 0.008
    assert 0.8 < bias.var() / (0.01**2 / 3) < 1.2


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
def test_additive_bias_is_one_vector(nonlinearity):
    layer = make("rnn", nonlinearity=nonlinearity)
    assert [name for name, _ in layer.named_parameters()] == [
        f"{kind}_l{k}" for k in range(2) for kind in ("weight_ih", "weight_hh", "bias")
    ]
    assert layer.bias_l0.shape == (6,)


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=ids[len(REAL) :])
def test_complex_networks_have_complex_state_and_twice_as_many_outputs(name, options):
    layer = make(name, **options)
    output, final = layer(draw(0, 7, 4, 3))
    assert layer.output_size == 12
    assert output.shape == (7, 4, 12)
    assert final.shape == (2, 4, 6)
    assert final.dtype == torch.complex128
    torch.testing.assert_close(output[-1], torch.cat([final[-1].real, final[-1].imag], dim=-1), rtol=0, atol=0)
