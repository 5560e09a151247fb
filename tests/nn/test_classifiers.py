"""tt and cp: against the whole tensor, in every ring, at any length, and as arithmetic circuits."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from mpmath import mp
from torch.func import functional_call, vmap

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime, Real, Symbolic
from mnemoscope.nn.tensor_classifier import normalised

B, D, N, R, C = 4, 5, 3, 4, 2
CLASSIFIERS = {
    "tt": ms.nn.TT,
    "tt-equal": lambda *sizes, **options: ms.nn.TT(*sizes, cores="equal", **options),
    "cp": ms.nn.CP,
}
EACH = pytest.mark.parametrize("name", CLASSIFIERS)


def make(name, n=N, r=R, d=D, c=C, *, dtype=torch.float64, seed=0, **options):
    return CLASSIFIERS[name](n, r, d, c, dtype=dtype, generator=torch.Generator().manual_seed(seed), **options)


def inputs(batch=B, d=D, n=N, dtype=torch.float64, seed=0):
    return torch.randn(batch, d, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def whole_tensor(network):
    """Return the coefficient tensor, (n, .., n, classes), entry by entry."""
    shape = (network.features,) * network.length
    found = np.zeros((*shape, network.classes))
    w = {name: p.detach().numpy() for name, p in network.named_parameters()}
    for index in np.ndindex(shape):
        if isinstance(network, ms.nn.CP):
            product = np.prod([w["factors"][k, i] for k, i in enumerate(index)], axis=0)
            found[index] = w["weight_out"] @ product
        else:
            row = w["first"][index[0]]
            for k, i in enumerate(index[1:-1]):
                row = row @ w["inner"][0 if network.cores == "equal" else k][:, i]
            found[index] = row @ w["last"][:, index[-1]]
    return found


def contract(tensor, x):
    """Sum over all indices, one example at a time."""
    d, n = x.shape
    total = 0
    for index in itertools.product(range(n), repeat=d):
        total = total + tensor[index] * math.prod(x[k, i] for k, i in enumerate(index))
    return total


# Scores ---------------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("n", "r", "d", "c"), [(N, R, D, C), (2, 3, 6, 1), (3, 1, 2, 2), (1, 2, 4, 3), (2, 2, 3, 2)])
def test_the_score_is_the_contraction_of_the_whole_tensor(name, n, r, d, c):
    network, x = make(name, n, r, d, c), inputs(d=d, n=n)
    tensor = whole_tensor(network)
    wanted = np.stack([contract(tensor, example) for example in x.numpy()])
    np.testing.assert_allclose(network(x).detach(), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cores", ["different", "equal"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_cores_of_a_class_make_its_tensor(cores, d):
    network = make("tt" if cores == "different" else "tt-equal", d=d)
    for label in range(C):
        first, *inner, last = network.tensor_cores(label)
        assert first.shape == (N, R)
        assert last.shape == (R, N)
        assert [core.shape for core in inner] == [(R, N, R)] * (d - 2)
        tensor = first
        for core in inner:
            tensor = torch.tensordot(tensor, core, 1)
        tensor = torch.tensordot(tensor, last, 1)
        np.testing.assert_allclose(tensor, whole_tensor(network)[..., label], rtol=1e-12, atol=1e-14)


def test_equal_cores_share_one_and_different_cores_do_not():
    assert make("tt", d=6).inner.shape == (4, R, N, R)
    assert make("tt-equal", d=6).inner.shape == (1, R, N, R)
    equal, different = make("tt-equal", d=6), make("tt", d=6)
    with torch.no_grad():
        different.first.copy_(equal.first)
        different.last.copy_(equal.last)
        different.inner.copy_(equal.inner.expand(4, R, N, R))
    assert torch.equal(equal(inputs(d=6)), different(inputs(d=6)))


@EACH
def test_rings_agree_with_floats_and_with_each_other(name):
    network, x = make(name, d=4), inputs(d=4, batch=2).numpy().round(2)
    real, exact, field = Real(), Symbolic(), Prime(PRIMES[0])
    scores = network(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(network.evaluate(real, network.exact_weights(real), x), scores, rtol=1e-13)
    rational = network.evaluate(exact, network.exact_weights(exact), exact.array(x))
    np.testing.assert_allclose(rational.astype(float), scores, rtol=1e-12)
    residues = network.evaluate(field, network.exact_weights(field), field.array(x))
    wanted = [int(v.p) * pow(int(v.q), -1, field.p) % field.p for v in rational.ravel()]
    assert residues.ravel().tolist() == wanted


@EACH
def test_gradients(name):
    network, x = make(name), inputs(batch=2).requires_grad_()
    parameters = {k: p.detach().clone().requires_grad_() for k, p in network.named_parameters()}

    def scores(x, *values):
        return functional_call(network, dict(zip(parameters, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(scores, (x, *parameters.values()))


@EACH
def test_gradients_where_a_factor_is_zero(name):
    network, x = make(name, d=3), inputs(batch=1, d=3)
    x[0, 1] = 0
    x.requires_grad_()
    assert not network(x).any()
    assert torch.autograd.gradcheck(network, x)


@EACH
def test_members_of_a_population(name):
    networks, x = [make(name, seed=seed) for seed in range(3)], inputs()
    stacked = {k: torch.stack([dict(n.named_parameters())[k] for n in networks]) for k in networks[0].state_dict()}
    batched = vmap(lambda p: functional_call(networks[0], p, (x,)))(stacked)
    assert torch.allclose(batched, torch.stack([network(x) for network in networks]))


# Scale ----------------------------------------------------------------------------------------------------------------


def reference(network, x, label):
    """Return a score with fifty digits and any exponent."""
    with mp.workdps(50):
        w = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
        f = [[mp.mpf(float(value)) for value in row] for row in x]
        if isinstance(network, ms.nn.CP):
            products = [mp.mpf(1)] * network.rank
            for k, row in enumerate(f):
                products = [
                    p * mp.fsum(v * mp.mpf(float(w["factors"][k, i, a])) for i, v in enumerate(row))
                    for a, p in enumerate(products)
                ]
            return mp.fsum(p * mp.mpf(float(w["weight_out"][label, a])) for a, p in enumerate(products))
        cores = [core.double().numpy() for core in network.tensor_cores(label)]
        row = [mp.fsum(v * mp.mpf(float(cores[0][i, a])) for i, v in enumerate(f[0])) for a in range(network.rank)]
        for core, features in zip(cores[1:-1], f[1:-1], strict=True):
            matrix = np.einsum("aib,i->ab", core.astype(object), np.array(features, dtype=object))
            row = [mp.fsum(row[a] * matrix[a, b] for a in range(network.rank)) for b in range(network.rank)]
        last = np.einsum("ai,i->a", cores[-1].astype(object), np.array(f[-1], dtype=object))
        return mp.fsum(v * entry for v, entry in zip(row, last, strict=True))


@EACH
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_784_vectors_neither_overflow_nor_underflow(name, factor, dtype):
    network, x = make(name, n=2, r=3, d=784, dtype=dtype), factor * inputs(batch=2, d=784, n=2, dtype=dtype)
    mantissa, log_scale = (part.detach() for part in network.log_scores(x))
    scores = network(x)
    digits = 1e-3 if dtype == torch.float32 else 1e-10
    for example, label in ((0, 0), (1, 1)):
        wanted = reference(network, x[example].double().numpy(), label)
        assert math.isclose(
            float(mp.log(abs(wanted))),
            math.log(abs(float(mantissa[example, label]))) + float(log_scale[example].double()),
            abs_tol=digits * 10,
            rel_tol=1e-6 if dtype == torch.float32 else 1e-12,
        )
        assert np.sign(float(mantissa[example, label])) == np.sign(wanted)
    assert scores.isfinite().all()
    assert scores.all()
    assert torch.equal(scores.argmax(1), mantissa.argmax(1))
    torch.testing.assert_close(scores[:, 0] / scores[:, 1], mantissa[:, 0] / mantissa[:, 1], rtol=1e-4, atol=0)


@EACH
def test_scores_within_the_range_are_not_touched(name):
    network = make(name, d=60)
    for factor in (1e-3, 1.0, 1e3):
        x = factor * inputs(d=60)
        real = Real()
        wanted = network.evaluate(real, network.exact_weights(real), x.numpy())
        np.testing.assert_allclose(network(x).detach(), wanted, rtol=1e-11)


@EACH
def test_gradients_stay_finite_in_long_products(name):
    network = make(name, n=2, r=3, d=784, dtype=torch.float32)
    x = inputs(batch=2, d=784, n=2, dtype=torch.float32).requires_grad_()
    mantissa, _ = network.log_scores(x)
    mantissa.sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad.any()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in network.parameters())


def test_normalising_is_exact():
    v = torch.tensor([[3.0, -0.1], [0.0, 0.0], [1e-310, 3e300], [1e-300, 2e-301]], dtype=torch.float64)
    scaled, exponent = normalised(v)
    assert exponent.flatten().tolist() == [1, 0, *(math.frexp(value)[1] - 1 for value in (3e300, 1e-300))]
    assert torch.equal(scaled[:2] * torch.exp2(exponent[:2]), v[:2])
    top = scaled.abs().amax(1)
    assert ((top >= 1) & (top < 2))[[0, 2, 3]].all()


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("kind", ["gaussian", "relu", "random"])
def test_scores_start_at_a_size_that_does_not_depend_on_the_length(name, kind):
    sizes = []
    for d in (8, 200):
        maps = {"relu": lambda: ms.nn.AffineReLU(4, 32), "random": lambda: ms.nn.RandomFeatures(4, 32)}
        feature_map = maps[kind]() if kind in maps else None
        network = make(name, n=32, r=32, d=d, c=8, feature_map=feature_map)
        x = inputs(batch=64, d=d, n=4 if feature_map else 32)
        mantissa, scale = network.log_scores(x)
        sizes.append(float(scale.double().mean() + mantissa.detach().abs().log().mean()))
    # ln of a factor: 192 more positions may move it by chance, sqrt(192) times what one does, and no more.
    assert abs(sizes[1] - sizes[0]) < 25


# Feature maps ---------------------------------------------------------------------------------------------------------


def test_affine_relu():
    feature_map = ms.nn.AffineReLU(3, 5)
    x = torch.randn(2, 4, 3)
    assert torch.equal(feature_map(x), torch.relu(x @ feature_map.weight.T + feature_map.bias))
    assert torch.equal(feature_map(torch.zeros(3)), torch.ones(5))  # a black patch must not silence all others
    z = feature_map(torch.randn(200_000, 3, generator=torch.Generator().manual_seed(0)))
    assert math.isclose(feature_map.mean_square, 5 * 1.9247, rel_tol=1e-4)
    assert abs(float(z.detach().square().sum(1).mean()) / feature_map.mean_square - 1) < 0.5


def test_powers():
    feature_map = ms.nn.Powers(2, 3)
    assert feature_map.features == 7
    assert feature_map(torch.tensor([2.0, -1.0])).tolist() == [1, 2, -1, 4, 1, 8, -1]
    x = torch.rand(200_000, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert math.isclose(float(feature_map(x).square().sum(1).mean()), feature_map.mean_square, rel_tol=0.01)


def test_random_features_estimate_the_gaussian_kernel():
    feature_map = ms.nn.RandomFeatures(3, 200_000, bandwidth=2.0, generator=torch.Generator().manual_seed(0))
    x, y = torch.tensor([0.3, -1.0, 0.5]), torch.tensor([1.0, 0.2, 0.1])
    kernel = math.exp(-float((x - y).square().sum()) / 8)
    assert math.isclose(float(feature_map(x) @ feature_map(y)), kernel, abs_tol=0.01)
    assert not list(feature_map.parameters())


@EACH
def test_a_feature_map_is_applied_at_every_position(name):
    feature_map = ms.nn.AffineReLU(7, N).double()
    network = make(name, feature_map=feature_map)
    plain, x = make(name), inputs(n=7)
    plain.load_state_dict({key: value for key, value in network.state_dict().items() if key in plain.state_dict()})
    assert network.input_size == 7
    assert torch.equal(network(x), plain(feature_map(x)))
    network(x).sum().backward()
    assert feature_map.weight.grad.any()


@EACH
def test_any_module_is_a_feature_map(name):
    network = make(name, feature_map=torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.Tanh()))
    assert network(inputs()).shape == (B, C)


# Circuits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"output_size": C}, {"output_size": 1, "learn_initial": True}])
@pytest.mark.parametrize("length", [2, 3, 6])
def test_a_shallow_rac_is_a_tensor_train_with_equal_cores(options, length):
    rac = ms.nn.RAC(N, R, dtype=torch.float64, **options)
    if options.get("learn_initial"):
        rac.initial_l0 = torch.randn(R)
    tt = rac.to_tt(length)
    assert (tt.cores, tt.rank, tt.features, tt.classes) == ("equal", R, N, rac.output_size)
    x = inputs(d=length)
    torch.testing.assert_close(tt(x), rac(x.transpose(0, 1))[0][-1], rtol=1e-12, atol=1e-14)


def test_the_conversion_is_that_of_the_formula():
    rac = ms.nn.RAC(N, R, output_size=C, dtype=torch.float64)
    w_i, w_h, w_o = (p.detach() for p in (rac.weight_ih_l0, rac.weight_hh_l0, rac.weight_out))
    tt = rac.to_tt(5)
    assert torch.equal(tt.first, w_i.T)
    for j, d, k in itertools.product(range(R), range(N), range(R)):
        assert tt.inner[0, j, d, k] == w_h[k, j] * w_i[k, d]
    last = torch.einsum("ck,kj,kd->jdc", w_o, w_h, w_i)
    torch.testing.assert_close(tt.last.detach(), last)


def test_the_conversion_is_exact():
    """With integer weights nothing is rounded: both are equal in the rational numbers."""
    rac, exact = ms.nn.RAC(2, 3, output_size=2), Symbolic()
    for name, p in rac.named_parameters():
        setattr(rac, name, torch.randint(-3, 4, p.shape, generator=torch.Generator().manual_seed(1)))
    tt = rac.to_tt(5)
    x = exact.array(np.random.default_rng(0).integers(-3, 4, (4, 5, 2)))
    scores = tt.evaluate(exact, tt.exact_weights(exact), x)
    y, _ = rac.evaluate(exact, rac.exact_weights(exact), x.transpose(1, 0, 2))
    assert (scores == y[-1]).all()


@pytest.mark.parametrize("length", [2, 3, 5])
@pytest.mark.parametrize(("n", "r", "c"), [(3, 2, 2), (2, 4, 1), (2, 2, 5), (1, 3, 2)])
def test_every_tensor_train_with_equal_cores_is_a_wider_rac(length, n, r, c):
    tt = make("tt-equal", n, r, length, c)
    rac = ms.nn.RAC.from_tt(tt)
    inner = r * min(n, r) if length > 2 else 0
    assert rac.hidden_size <= inner + r + r * min(n, c)
    x = inputs(d=length, n=n)
    torch.testing.assert_close(rac(x.transpose(0, 1))[0][-1], tt(x), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("length", [3, 6])
def test_there_and_back_keeps_the_rank(length):
    rac = ms.nn.RAC(N, R, output_size=C, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    back = ms.nn.RAC.from_tt(rac.to_tt(length))
    assert back.hidden_size == R
    x = inputs(d=length).transpose(0, 1)
    torch.testing.assert_close(back(x)[0][-1], rac(x)[0][-1], rtol=1e-10, atol=1e-12)


# Copies and chance ----------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("mapped", [False, True])
def test_copies_are_the_same_function(name, mapped, tmp_path):
    feature_map = ms.nn.AffineReLU(6, N) if mapped else None
    network, x = make(name, feature_map=feature_map), inputs(n=6 if mapped else N)
    ms.nn.save(network, tmp_path / "network")
    twins = [copy.deepcopy(network), pickle.loads(pickle.dumps(network)), ms.nn.load(tmp_path / "network")]
    for twin in twins:
        assert repr(twin) == repr(network)
        assert torch.equal(twin(x), network(x))


def test_what_a_file_cannot_name_is_refused(tmp_path):
    network = make("tt", feature_map=torch.nn.Linear(N, N))
    with pytest.raises(UserError, match="^tt has a part that no file can name; save its state_dict instead$"):
        ms.nn.save(network, tmp_path / "network")
    assert not list(tmp_path.iterdir())


@EACH
def test_a_generator_decides_all(name):
    description = {"name": "affine-relu", "input_size": 4, "features": N}
    before = torch.get_rng_state()
    first, again, other = (make(name, seed=seed, feature_map=description) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not any(
        torch.equal(a, b) for a, b in zip(first._parameters.values(), other._parameters.values(), strict=True)
    )
    other.reset_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(before, torch.get_rng_state())
    other.reset_parameters()
    assert not torch.equal(other.feature_map.weight, first.feature_map.weight)


def test_a_map_that_is_given_keeps_its_weights():
    feature_map = ms.nn.AffineReLU(4, N)
    before = feature_map.weight.detach().clone()
    network = ms.nn.TT(N, R, D, C, feature_map=feature_map)
    assert torch.equal(network.feature_map.weight, before)


def test_the_registry_builds_them():
    network = ms.nn.create("tt", features=N, rank=R, length=D, classes=C, cores="equal")
    assert repr(network) == f'TT({N}, {R}, length={D}, classes={C}, cores="equal")'
    assert ms.nn.names("classifier") == ["cp", "tt"]
    assert network.kind == "classifier"
    assert ms.nn.TT(N, R, D, C, "equal", None).cores == "equal"


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [ms.nn.TT, ms.nn.CP])
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("value", [0, -3, 2.5, float("nan"), "8", True])
def test_sizes_that_are_not_positive(cls, position, value):
    sizes = [N, R, D, C]
    sizes[position] = value
    name = ("features", "rank", "length", "classes")[position]
    with pytest.raises(UserError) as caught:
        cls(*sizes)
    assert str(caught.value) == f"{name} must be a positive integer, got {value!r}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.nn.TT(N, R, 1, C), "length must be at least 2, got 1"),
        (lambda: ms.nn.TT(N, R, D, C, cores="same"), "cores must be 'different' or 'equal', got 'same'"),
        (lambda: ms.nn.TT(N, R, D, C, feature_map=3), "feature_map must be a torch module, None, or"),
        (
            lambda: ms.nn.TT(N, R, D, C, feature_map={"name": "relu"}),
            "the name of feature_map must be 'affine-relu' or",
        ),
        (lambda: ms.nn.TT(N, R, D, C, feature_map={"name": "polynomial"}), "feature_map must be described by"),
        (
            lambda: ms.nn.TT(N, R, D, C, feature_map=ms.nn.Powers(1, 3)),
            "features must be 4, as feature_map gives, got 3",
        ),
        (lambda: ms.nn.TT(N, R, D, C, dtype=torch.int64), "dtype must be a real floating-point type, got torch.int64"),
        (lambda: ms.nn.TT(N, R, D, C, generator=3), "generator must be a torch.Generator or None, got 3"),
        (lambda: make("tt").tensor_cores(C), f"label must be a whole number from 0 to {C - 1}, got {C}"),
        (lambda: ms.nn.Powers(1, 0), "degree must be a positive integer, got 0"),
        (lambda: ms.nn.RandomFeatures(1, 2, bandwidth=0), "bandwidth must be a positive number, got 0"),
        (lambda: ms.nn.AffineReLU(0, 2), "input_size must be a positive integer, got 0"),
        (lambda: ms.nn.RAC.from_tt(make("tt")), 'only a tensor train with cores="equal" is a RAC'),
        (
            lambda: ms.nn.RAC.from_tt(make("tt-equal", feature_map=torch.nn.Tanh())),
            "only a tensor train without a feature map is a RAC",
        ),
        (lambda: ms.nn.RAC(2, 3, num_layers=2).to_tt(4), "only a RAC of one layer and direction is a tensor train"),
        (lambda: ms.nn.RAC(2, 3).to_tt(1), "length must be at least 2, got 1"),
        (lambda: make("tt", feature_map=torch.nn.Linear(N, 9).double())(inputs()), "what feature_map gives must be"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@EACH
def test_bad_sequences(name):
    network = make(name)
    for x, message in (
        (inputs(d=D + 3), f"a sequence must be as long as the network, d = {D} vectors, got {D + 3}"),
        (inputs(d=D - 1), f"a sequence must be as long as the network, d = {D} vectors, got {D - 1}"),
        (inputs(n=N + 1), f"the last axis of input must be input_size = {N}, got {N + 1}"),
        (inputs()[0], f"input must be of shape (batch, {D}, {N}), got ({D}, {N})"),
        (inputs().float(), "input must be of the parameters' type torch.float64, got torch.float32"),
        (inputs().tolist(), "input must be a tensor, got list"),
    ):
        with pytest.raises(UserError) as caught:
            network(x)
        assert str(caught.value) == message
    ring = Real()
    with pytest.raises(UserError, match=f"^features must be of shape .batch, {D}, {N}., got"):
        network.evaluate(ring, network.exact_weights(ring), np.zeros((1, D + 1, N)))
