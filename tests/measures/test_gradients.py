"""Gradient norms against autograd, Proposition 3.4.2, and what is known of linear and orthogonal networks."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.gradients import gradient_norms
from mnemoscope.measures.growth import fit_growth
from mnemoscope.theory import orthogonal_relu_bound, triangular_power


def by_autograd(layer, x, loss, output):
    """Norms of dL/dh_T, .. dL/dh_0 of a batch of one, by one backward pass; `output` reads y_t off the flat state."""
    state = layer.init_state(1)
    flats, outputs = [layer.flatten_state(state).requires_grad_()], []
    for step in x:
        _, state = layer.step(step, layer.unflatten_state(flats[-1], state))
        flats.append(layer.flatten_state(state))
        outputs.append(output(flats[-1]))
    gradients = torch.autograd.grad(loss(torch.stack(outputs)), flats)
    return np.array([float(each.norm()) for each in gradients[::-1]])


LOSSES = {
    "last": lambda y: y[-1].square().sum(),
    "all": lambda y: (y**3).mean() + y[4].sum(),
    "middle": lambda y: y[6].sum(),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("name", "options", "output"),
    [
        ("rnn", {}, lambda h: h),
        ("rnn", {"num_layers": 2}, lambda h: h[:, 5:]),
        ("gru", {}, lambda h: h),
        ("lstm", {}, lambda h: h[:, :5]),
        ("urnn", {}, lambda h: torch.cat([h[:, ::2], h[:, 1::2]], dim=1)),
        # Outputs that are no part of the state: found as functions of it.
        ("rnn", {"activation": "depth"}, torch.tanh),
    ],
)
def test_norms_are_those_of_autograd(name, options, output, loss):
    layer = ms.nn.create(name, input_size=3, hidden_size=5, **options).double()
    x = torch.randn(12, 1, 3, dtype=torch.float64)
    found = gradient_norms(layer, inputs=x, loss=LOSSES[loss])
    np.testing.assert_allclose(found.norms, by_autograd(layer, x, LOSSES[loss], output), rtol=1e-9)


def attentive_by_autograd(layer, x, loss):
    """The same of a network that attends to all its states, by those that its core makes and by an LSTM's cells."""
    w = {name.removesuffix("_l0"): each for name, each in layer.named_parameters()}
    bias = sum(each for name, each in w.items() if name.startswith("bias"))
    s = c = torch.zeros(layer.hidden_size, dtype=torch.float64)
    states, cells, outputs = [], [], []
    for a in x[:, 0]:
        z = w["weight_ih"] @ a + w["weight_hh"] @ s + bias
        if layer.core == "lstm":
            i, f, g, o = z.chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h, c = o.sigmoid() * c.tanh(), c.clone()
            cells.append(c)
        else:
            h = z.tanh()
        states.append(h)
        held = torch.stack(states)
        fits = torch.tanh(w["weight_query"] @ s + held @ w["weight_key"].T) @ w["weight_score"]
        s = h + fits.softmax(0) @ held
        outputs.append(s if layer.readout == "s" else h)
    value = loss(torch.stack(outputs)[:, None])
    found = torch.autograd.grad(value, states + cells, materialize_grads=True)
    steps = [found[: len(states)], found[len(states) :]] if cells else [found]
    return np.array([float(torch.cat(each).norm()) for each in zip(*steps, strict=True)][::-1])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("readout", ["s", "h"])
@pytest.mark.parametrize(
    ("name", "options"),
    [("memrnn", {"capacity": 12}), ("memlstm", {}), ("relrnn", {"buffer": 12}), ("rellstm", {"buffer": 12})],
)
def test_states_that_are_attended_to_act_through_their_copies(name, options, readout, loss):
    layer = ms.nn.create(name, input_size=3, hidden_size=4, readout=readout, **options).double()
    x = torch.randn(12, 1, 3, dtype=torch.float64)
    found = gradient_norms(layer, inputs=x, loss=LOSSES[loss])
    np.testing.assert_allclose(found.norms[:-1], attentive_by_autograd(layer, x, LOSSES[loss]), rtol=1e-9, atol=1e-14)


def test_outputs_that_are_not_always_the_same_numbers_of_the_state():
    # A ring of four states: the newest stands where the step says.
    layer = ms.nn.create("relrnn", input_size=2, hidden_size=3, buffer=4, relevant=0, readout="h").double()
    x = torch.randn(9, 1, 2, dtype=torch.float64, requires_grad=True)
    layer(x)[0].square().sum().backward()
    found = gradient_norms(layer, inputs=x.detach(), loss=lambda y: y.square().sum(), at="inputs")
    np.testing.assert_allclose(found.norms, x.grad[:, 0].norm(dim=1).flip(0), rtol=1e-9)


@pytest.mark.parametrize("name", ["matrixrnn", "matntm"])
def test_outputs_that_are_matrices(name):
    layer = ms.nn.create(
        name, input_size=(2, 1), hidden_size=(2, 3), **({"memory": (4, 2, 2)} if name == "matntm" else {})
    )
    layer = layer.double()
    x = torch.randn(6, 1, 2, 1, dtype=torch.float64, requires_grad=True)
    layer(x)[0].square().sum().backward()
    found = gradient_norms(layer, inputs=x.detach().flatten(2), loss=lambda y: y.square().sum(), at="inputs")
    np.testing.assert_allclose(found.norms, x.grad[:, 0].flatten(1).norm(dim=1).flip(0), rtol=1e-9)
    assert np.isfinite(gradient_norms(layer, inputs=x.detach().flatten(2), loss=lambda y: y.square().sum()).norms).all()


def test_last_state_is_read_by_a_unit_vector():
    layer = ms.nn.LSTM(2, 3, num_layers=2)
    found = gradient_norms(layer, horizon=10, trajectories=5)
    assert found.norms[0] == pytest.approx(1, rel=1e-12)
    assert found.norms.shape == (11,)
    assert found.status == "estimate"


@pytest.mark.parametrize("radius", [0.3, 0.95, 1.0, 1.4])
def test_scaled_rotations_keep_their_rate_beyond_the_range_of_floats(radius):
    layer = ms.nn.LinearRNN(1, 6, init="random", bias=False).double()
    layer.weight_hh_l0 = radius * torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64)).Q
    steps = 900 if radius > 1 else 1200
    found = gradient_norms(layer, horizon=steps, trajectories=2, scale=0.0)
    np.testing.assert_allclose(found.log_norms, np.log(radius) * np.arange(steps + 1), atol=1e-9)
    assert found.rate == pytest.approx(np.log(radius), abs=1e-12)
    assert found.law == ("constant" if radius == 1 else "exponential")
    assert found.spread.max() < 1e-9


@pytest.mark.parametrize(("size", "x"), [(2, 0.5), (3, -0.25), (4, 1.0)])
def test_proposition_3_4_2_is_met(size, x):
    layer = ms.nn.LinearRNN(1, size, bias=False).double()
    layer.weight_hh_l0 = torch.from_numpy(np.triu(np.full((size, size), x), 1) + np.eye(size))
    # A loss of the first unit alone: its gradient t steps back is the first row of A^t.
    found = gradient_norms(layer, inputs=torch.zeros(400, 1, 1), loss=lambda y: y[-1, 0, 0])
    for t in (1, 2, 7, 100, 400):
        wanted = np.linalg.norm(triangular_power(size, t, x)[0])
        assert found.norms[t] == pytest.approx(wanted, rel=1e-10)
    assert found.law == "polynomial"
    assert found.order == pytest.approx(size - 1, abs=0.05 * size)


def test_orthogonal_relu_network_stays_below_its_bound():
    layer = ms.nn.IRNN(2, 8).double()
    layer.weight_hh_l0 = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64)).Q
    x = torch.randn(40, 1, 2, dtype=torch.float64)
    with torch.no_grad():
        active = (layer(x)[0] > 0)[:, 0].numpy()
    found = gradient_norms(layer, inputs=x)
    assert (found.norms <= orthogonal_relu_bound(active) * found.norms[0] * (1 + 1e-12)).all()
    assert (np.diff(found.norms) <= 1e-12).all()


def test_delay_line_forgets_exactly():
    layer = ms.nn.LinearRNN(1, 5, bias=False)
    layer.weight_hh_l0 = torch.diag(torch.ones(4), -1)
    found = gradient_norms(layer, horizon=20, trajectories=3)
    assert np.isfinite(found.log_norms[:5]).all()
    assert np.isneginf(found.log_norms[5:]).all()
    assert not found.norms[5:].any()
    np.testing.assert_array_equal(found.vanished, [0] * 5 + [1] * 16)


def test_dead_units_stop_the_gradient():
    layer = ms.nn.RNN(1, 4, nonlinearity="relu")
    layer.bias_l0 = torch.full((4,), -50.0)
    found = gradient_norms(layer, horizon=30)
    assert found.law == "vanished"
    assert found.rate == -np.inf
    assert str(found) == "gradient over 30 steps back: exactly zero after a few steps"


def test_loss_that_ends_early_is_fitted_from_there():
    layer = ms.nn.LinearRNN(1, 4, bias=False).double()
    layer.weight_hh_l0 = 0.8 * torch.eye(4, dtype=torch.float64)
    found = gradient_norms(layer, inputs=torch.zeros(60, 1, 1), loss=lambda y: y[39].sum())
    assert not found.norms[:20].any()
    np.testing.assert_allclose(found.norms[20:], 2 * 0.8 ** np.arange(41), rtol=1e-12)
    assert found.rate == pytest.approx(np.log(0.8), abs=1e-12)


def test_fits_tell_the_laws_apart():
    k = np.arange(1, 301)
    noise = np.random.default_rng(0).normal(0, 0.05, size=300)
    fading = fit_growth(-0.02 * k + noise)
    assert fading.law == "exponential"
    assert fading.rate == pytest.approx(-0.02, abs=3e-4)
    growing = fit_growth(1.5 * np.log(k) + noise)
    assert growing.law == "polynomial"
    assert growing.order == pytest.approx(1.5, abs=0.05)


def test_largest_exponent_is_the_rate_of_a_random_network():
    from mnemoscope.measures.lyapunov import lyapunov_exponents

    layer = ms.nn.RNN(2, 8)
    rate = gradient_norms(layer, horizon=600, trajectories=4).rate
    top = lyapunov_exponents(layer, horizon=600, trajectories=4)
    assert rate == pytest.approx(top.exponents[0], abs=6 * top.stderr[0])


@pytest.mark.parametrize("module", [nn.LSTMCell(2, 3), nn.GRU(2, 3, batch_first=True), nn.RNN(2, 3, 2)])
def test_modules_of_torch_are_adapted(module):
    found = gradient_norms(module, horizon=10, trajectories=2, loss=lambda y: y[-1].sum())
    assert np.isfinite(found.log_norms).all()
    assert found.rate < 0


def test_result_prints_plots_and_exports():
    found = gradient_norms(ms.nn.RNN(1, 4), horizon=50)
    assert str(found).startswith("gradient over 50 steps back: exponential, rate -")
    assert found.plot().to_dict()["layer"]
    assert found.to_dict()["law"] == "exponential"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": lambda y: y[-1]}, r"loss\(outputs\) must be one number that depends on the outputs, got a tensor"),
        ({"loss": lambda y: 3.0}, r"loss\(outputs\) must be one number that depends on the outputs, got float"),
        (
            {"loss": lambda y: y[-1].sum().log() * 0 + torch.nan * y.sum()},
            r"the gradient of loss\(outputs\) must be finite",
        ),
        (
            {"loss": lambda y: 0 * y.sum()},
            r"loss\(outputs\) must be a number that changes with the outputs, got a gradient",
        ),
        ({"inputs": torch.zeros(4, 2)}, r"inputs must be of shape \(time, trajectories, 2\), got \(4, 2\)"),
        ({"inputs": torch.full((4, 1, 2), torch.inf)}, "inputs must be finite, got NaN or infinity"),
        ({"horizon": -1}, "horizon must be a positive integer, got -1"),
        ({"horizon": 8 * 10**7}, "gradient_norms with 80000000 steps needs .* would fit"),
    ],
)
def test_mistakes_are_said_in_one_line(options, message):
    with pytest.raises(ValueError, match="^" + message) as caught:
        gradient_norms(ms.nn.RNN(2, 3), **options)
    assert "\n" not in str(caught.value)


def test_bidirectional_networks_are_refused():
    with pytest.raises(
        ValueError, match="^gradient_norms needs a causal network, and this one is not: it is bidirectional$"
    ):
        gradient_norms(ms.nn.GRU(2, 3, bidirectional=True))


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_gradients_at_inputs_are_those_of_autograd(name):
    """From outputs to inputs, against one backward pass through the whole sequence."""
    network = ms.nn.NetworkSpec(name, input_size=2, hidden_size=5, seed=1).build().double()
    x = torch.randn(30, 1, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = gradient_norms(network, at="inputs", inputs=x, loss=lambda y: y[-1].square().sum())
    leaf = x.clone().requires_grad_()
    (whole,) = torch.autograd.grad(network(leaf)[0][-1].square().sum(), leaf)
    assert found.norms == pytest.approx(whole.norm(dim=2)[:, 0].flip(0).numpy(), rel=1e-9)


def test_gradients_at_inputs_do_not_see_scale_and_order_of_outputs():
    inner = torch.nn.RNN(1, 6)
    order, scale = torch.tensor([3, 1, 0, 5, 4, 2]), torch.tensor([1.0, 8, 64, 0.5, 2, 1024])

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x, h=None):
            y, h = self.inner(x, h)
            return y[..., order] * scale, h

    first, second = (gradient_norms(each, at="inputs", horizon=40) for each in (inner, Other()))
    assert second.rate == pytest.approx(first.rate, abs=1e-9)


def test_where_gradients_are_looked_at_is_checked():
    with pytest.raises(UserError, match="at must be"):
        gradient_norms(torch.nn.RNN(1, 3), at="outputs")
