"""The fused recurrence against its naive twin: values, last state, all gradients, and every way to compose it."""

import copy
import multiprocessing

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils._pytree import tree_leaves

import mnemoscope as ms
from mnemoscope.nn import first_order
from mnemoscope.nn.networks import henaff
from mnemoscope.nn.ops.phi import PHIS
from mnemoscope.nn.ops.recurrence import Plan, naive_recurrence, recurrence

FIRST_ORDER = sorted(name for name in ms.nn.names() if issubclass(ms.nn.get(name), first_order.FirstOrder))


def problem(steps, batch, width, units, phi, *, driven=False, norm=1.0, seed=0):
    """Return x, U, b, V, h_0, c in float64 with ||V||_2 = norm; `driven`: x is what the input contributes."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    additive = "modrelu" not in phi
    v = draw(units, units)
    biases = {"modrelu": units, "complex-modrelu": units // 2}
    return (
        draw(steps, batch, units if driven else width),
        None if driven else draw(units, width),
        draw(units) if additive and not driven else None,
        norm * v / torch.linalg.matrix_norm(v, 2),
        draw(batch, units),
        0.3 * draw(biases[phi]) if not additive else None,
    )


def gradients(function, tensors, g):
    leaves = [t.clone().requires_grad_() for t in tensors if t is not None]
    source = iter(leaves)
    out = function(*[None if t is None else next(source) for t in tensors])
    return out, torch.autograd.grad(out, leaves, g)


def assert_twins(tensors, plan):
    g = torch.randn(*tensors[0].shape[:-1], tensors[4].shape[-1], dtype=torch.float64)
    fast, fast_parts = gradients(lambda *t: recurrence(*t, plan), tensors, g)
    slow, slow_parts = gradients(lambda *t: naive_recurrence(*t, plan), tensors, g)
    assert fast.shape == slow.shape
    for a, b in zip((fast, *fast_parts), (slow, *slow_parts), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(
    steps=st.integers(1, 12),
    batch=st.integers(0, 5),
    width=st.integers(1, 4),
    units=st.integers(1, 7),
    phi=st.sampled_from(sorted(PHIS)),
    checkpoint=st.none() | st.integers(1, 14),
    driven=st.booleans(),
    norm=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 10_000),
    ragged=st.booleans(),
)
@example(1, 1, 1, 1, "tanh", None, False, 1.0, 0, False)
@example(3, 0, 2, 3, "modrelu", None, False, 1.0, 0, False)
@example(9, 3, 2, 4, "complex-modrelu", 4, False, 1.0, 1, True)
def test_fused_equals_naive(steps, batch, width, units, phi, checkpoint, driven, norm, seed, ragged):
    units += units % 2 if phi == "complex-modrelu" else 0
    sizes = None
    if ragged and batch:
        lengths = torch.randint(1, steps + 1, (batch,), generator=torch.Generator().manual_seed(seed))
        lengths[0] = steps
        sizes = tuple(int((lengths > t).sum()) for t in range(steps))
    tensors = problem(steps, batch, width, units, phi, driven=driven, norm=norm, seed=seed)
    assert_twins(tensors, Plan(phi, sizes, checkpoint))


@pytest.mark.parametrize("large", [1, 10**9], ids=["large steps", "small steps"])
@pytest.mark.parametrize("form", ["whole", "ragged", "population"])
@pytest.mark.parametrize("phi", sorted(PHIS))
def test_long_sequences_cross_chunks_of_the_backward_pass(phi, form, large, monkeypatch):
    from mnemoscope.nn.ops import kernel
    from mnemoscope.nn.ops import phi as phis

    monkeypatch.setattr(phis, "_LARGE", large)
    monkeypatch.setattr(kernel, "_CHUNK", 7 * 3 * 4)
    monkeypatch.setattr(kernel, "_ROWS", 1)
    tensors, sizes = problem(40, 3, 2, 4, phi), None
    assert kernel.steps_in_cache(3, 4) == kernel.steps_in_cache(3, 4, (2,)) == 7
    if form == "ragged":
        sizes = (3,) * 5 + (2,) * 20 + (1,) * 15
    if form == "population":
        pairs = zip(tensors, problem(40, 3, 2, 4, phi, seed=1), strict=True)
        tensors = [a if a is None else torch.stack([a, b]) for a, b in pairs]
    assert_twins(tensors, Plan(phi, sizes))


@pytest.mark.parametrize("large", [1, 10**9], ids=["large steps", "small steps"])
@pytest.mark.parametrize("phi", sorted(PHIS))
def test_the_gradient_that_arrives_is_left_as_it_is(phi, large, monkeypatch):
    """Hooks and other branches of the graph may hold it."""
    monkeypatch.setattr("mnemoscope.nn.ops.phi._LARGE", large)
    tensors = [t if t is None else t.requires_grad_() for t in problem(5, 2, 3, 4, phi)]
    out = recurrence(*tensors, Plan(phi))
    g = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(0))
    before = g.clone()
    out.backward(g)
    assert torch.equal(g, before)


def test_an_output_that_was_changed_before_its_gradient_is_refused():
    *tensors, _ = problem(5, 2, 3, 4, "tanh")
    out = recurrence(*(t.requires_grad_() for t in tensors), None, Plan("tanh"))
    out += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_gradients_can_enter_a_graph_again():
    *tensors, _ = problem(5, 2, 1, 1, "tanh")
    leaves = [t.requires_grad_() for t in tensors]
    gradients = torch.autograd.grad(recurrence(*leaves, None, Plan("tanh")).sum(), leaves)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        again = torch.autograd.grad((gradient * leaf).sum(), leaf)
        torch.testing.assert_close(again[0], gradient)


@pytest.mark.parametrize("phi", sorted(PHIS))
def test_gradients_are_right_to_second_order(phi):
    tensors = problem(4, 2, 3, 4, phi, norm=0.9)
    leaves = [t.clone().requires_grad_() for t in tensors if t is not None]

    def function(*some):
        source = iter(some)
        return recurrence(*[None if t is None else next(source) for t in tensors], Plan(phi))

    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


def test_modrelu_at_zero_is_zero_for_either_sign_of_its_bias():
    c = torch.tensor([0.5, -0.5, 0.0], dtype=torch.float64)
    x = torch.zeros(1, 1, 3, dtype=torch.float64)
    v, h0 = torch.zeros(3, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    assert recurrence(x, None, None, v, h0, c, Plan("modrelu")).tolist() == [[[0.0, 0.0, 0.0]]]


@pytest.mark.parametrize("phi", ["modrelu", "complex-modrelu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_gradient_of_a_modrelu_at_zero_is_lost_in_nan(phi, dtype):
    c = torch.tensor([0.5, -0.5, 0.0], dtype=dtype).requires_grad_()
    units = 3 if phi == "modrelu" else 6
    x, v = torch.zeros(2, 1, units, dtype=dtype).requires_grad_(), torch.eye(units, dtype=dtype).requires_grad_()
    out = recurrence(x, None, None, v, None, c, Plan(phi))
    assert torch.equal(out, torch.zeros_like(out))
    for part in torch.autograd.grad(out.sum(), [x, v, c]):
        assert torch.isfinite(part).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_modrelu_is_its_definition_to_the_last_bit(dtype):
    z = torch.randn(1, 500, 8).to(dtype)
    c = torch.linspace(-1, 1, 8).to(dtype)
    zero = torch.zeros(8, 8, dtype=dtype)
    out = recurrence(z, None, None, zero, torch.zeros(500, 8, dtype=dtype), c, Plan("modrelu"))
    assert torch.equal(out, torch.sgn(z) * torch.relu(z.abs() + c))


def test_gradient_of_a_modrelus_bias_keeps_its_digits_in_16_bits():
    c = torch.linspace(-0.1, 0.1, 4)
    x, v = torch.rand(3000, 2, 4) + 1, torch.zeros(4, 4)
    found = {}
    for dtype in (torch.bfloat16, torch.float64):
        bias = c.to(dtype).requires_grad_()
        out = recurrence(x.to(dtype), None, None, v.to(dtype), None, bias, Plan("modrelu"))
        found[dtype] = torch.autograd.grad(out.sum(), bias)[0].double()
    torch.testing.assert_close(found[torch.bfloat16], found[torch.float64], rtol=0.01, atol=0)


# The layer: fused against plain loop -----------------------------------------------------------------


def plain_loop(monkeypatch):
    monkeypatch.setattr(first_order, "can_fuse", lambda w: False)
    monkeypatch.setattr(henaff, "can_fuse", lambda w: False)


def layer_of(name, **options):
    generator = torch.Generator().manual_seed(3)
    layer = ms.nn.create(name, input_size=3, hidden_size=6, dtype=torch.float64, generator=generator, **options)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return layer


def loss_and_gradients(layer, call):
    x = torch.randn(7, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    output, state = call(layer, x)
    loss = output.sin().sum() + sum(leaf.abs().square().sum() for leaf in tree_leaves(state))
    return [output, *tree_leaves(state), *torch.autograd.grad(loss, [x, *layer.parameters()])]


def packed(layer, x):
    output, state = layer(pack_padded_sequence(x, torch.tensor([3, 7, 1, 5]), enforce_sorted=False))
    return output.data, state


@pytest.mark.parametrize("form", ["whole", "packed"])
@pytest.mark.parametrize("phi", ["tanh", "relu", "modrelu", "identity"])
@pytest.mark.parametrize("activation", ["recurrent", "depth"])
@pytest.mark.parametrize("name", FIRST_ORDER)
def test_layer_is_the_same_without_the_engine(name, activation, phi, form, monkeypatch):
    options = {"num_layers": 2, "bidirectional": True}
    if name != "linear-rnn":
        options["nonlinearity"] = phi
    if name not in ("linear-rnn", "henaff"):
        options["activation"] = activation
    layer = layer_of(name, **options)
    call = packed if form == "packed" else lambda layer, x: layer(x)
    fast = loss_and_gradients(layer, call)
    plain_loop(monkeypatch)
    slow = loss_and_gradients(layer, call)
    for a, b in zip(fast, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "field"), [("full-urnn", "complex"), ("exprnn", "complex")])
def test_complex_layer_is_the_same_without_the_engine(name, field, monkeypatch):
    layer = layer_of(name, field=field)
    fast = loss_and_gradients(layer, packed)
    plain_loop(monkeypatch)
    for a, b in zip(fast, loss_and_gradients(layer, packed), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
def test_checkpointing_changes_nothing_but_memory(every):
    plain, saved = layer_of("scornn"), layer_of("scornn", checkpoint_every=every)
    saved.load_state_dict(plain.state_dict())
    for a, b in zip(loss_and_gradients(plain, packed), loss_and_gradients(saved, packed), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_checkpointing_keeps_less():
    def kept(layer):
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t)
        with hooks:
            layer(torch.randn(900, 2, 3, dtype=torch.float64))
        return sum(sizes)

    # 900 x 2 x 6 states and 900 x 2 x 3 inputs; or 29 states of 2 x 6 and the inputs. Weights: some tens.
    assert kept(layer_of("rnn")) > 16_000
    assert kept(layer_of("rnn", checkpoint_every=30)) < 6_500


# Composition -----------------------------------------------------------------------------------------

COMPOSED = ["rnn", "scornn", "exprnn", "nnrnn", "henaff", "ornn", "eurnn", "urnn", "full-urnn", "scurnn", "soft-orth"]


def stacked(name, members=3):
    layers = [layer_of(name) for _ in range(members)]
    for i, layer in enumerate(layers):
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(0.05 * i)
    named = [dict(layer.named_parameters()) | dict(layer.named_buffers()) for layer in layers]
    weights = {key: torch.stack([own[key].detach() for own in named]) for key in named[0]}
    return layers, weights


def batch_of(members=3):
    return torch.randn(members, 5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", COMPOSED)
def test_vmap_over_parameters_inputs_and_both(name):
    layers, weights = stacked(name)
    base, x = layers[0], batch_of()

    def call(weights, x):
        return torch.func.functional_call(base, weights, (x,))[0]

    both = torch.vmap(call)(weights, x)
    parameters = torch.vmap(call, in_dims=(0, None))(weights, x[0])
    inputs = torch.vmap(call, in_dims=(None, 0))({k: w[0] for k, w in weights.items()}, x)
    for i, layer in enumerate(layers):
        torch.testing.assert_close(both[i], layer(x[i])[0], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(parameters[i], layer(x[0])[0], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(inputs[i], base(x[i])[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", COMPOSED)
def test_vmap_of_grad_and_grad_of_vmap(name):
    layers, weights = stacked(name)
    base, x = layers[0], batch_of()
    names = [key for key, _ in base.named_parameters()]
    fixed = {key: w for key, w in weights.items() if key not in names}
    learned = {key: weights[key].clone().requires_grad_() for key in names}

    def loss(learned, fixed, x):
        return torch.func.functional_call(base, {**learned, **fixed}, (x,))[0].square().sum()

    mapped = torch.vmap(torch.func.grad(loss))(learned, fixed, x)
    torch.vmap(loss)(learned, fixed, x).sum().backward()
    for i, layer in enumerate(layers):
        layer.zero_grad()
        layer(x[i])[0].square().sum().backward()
        for key, p in layer.named_parameters():
            torch.testing.assert_close(mapped[key][i], p.grad, rtol=1e-9, atol=1e-10)
            torch.testing.assert_close(learned[key].grad[i], p.grad, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["rnn", "scornn", "exprnn", "scurnn"])
def test_jacobians_forward_and_backward_agree(name):
    layer, x = layer_of(name), batch_of()[0]

    def function(x):
        return layer(x)[0]

    backward = torch.func.jacrev(function)(x)
    forward = torch.func.jacfwd(function)(x)
    torch.testing.assert_close(backward, forward, rtol=1e-9, atol=1e-10)
    _, pull = torch.func.vjp(function, x)
    g = torch.randn_like(function(x))
    torch.testing.assert_close(pull(g)[0], torch.einsum("tbo,tboijk->ijk", g, backward), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["rnn", "exprnn"])
def test_hessian_forward_over_backward_and_backward_twice(name):
    layer, x = layer_of(name), batch_of()[0, :3, :1]

    def loss(x):
        return layer(x)[0].pow(3).sum()

    twice = torch.func.jacrev(torch.func.jacrev(loss))(x)
    torch.testing.assert_close(twice, torch.func.hessian(loss)(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["rnn", "scornn", "nnrnn", "scurnn"])
def test_compiled_layer_gives_the_same(name):
    torch._dynamo.reset()
    layer = layer_of(name)
    compiled = torch.compile(layer, backend="aot_eager")
    eager = loss_and_gradients(layer, lambda layer, x: layer(x))
    for a, b in zip(eager, loss_and_gradients(layer, lambda _, x: compiled(x)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    torch._dynamo.reset()


@pytest.mark.parametrize("name", ["rnn", "scornn", "exprnn", "nnrnn", "lstm", "gru", "goru"])
def test_autocast_keeps_the_maps_exact_and_runs_in_the_type_of_the_input(name):
    layer = ms.nn.create(name, input_size=3, hidden_size=16)
    x = torch.randn(6, 2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        same, _ = layer(x)
        rounded, _ = layer(x.bfloat16())
    assert same.dtype == torch.float32
    torch.testing.assert_close(same, layer(x)[0], rtol=0, atol=0)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), same, rtol=0.1, atol=0.1)
    rounded.float().sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in layer.parameters())


def _run_in_child(layer, x):
    torch.set_num_threads(1)
    return layer(x)[0].detach()


@pytest.mark.parametrize("name", ["rnn", "nnrnn", "lstm"])
def test_layers_travel_to_another_process(name):
    layer, x = layer_of(name), batch_of()[0]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_run_in_child, (layer, x))
    torch.testing.assert_close(there, layer(x)[0].detach(), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["rnn", "nnrnn"])
def test_deepcopy_is_independent(name):
    layer, x = layer_of(name), batch_of()[0]
    before = layer(x)[0].detach().clone()
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        for p in twin.parameters():
            p.mul_(0.5)
    assert torch.equal(layer(x)[0], before)
    assert not torch.allclose(twin(x)[0], before)


def test_input_of_another_type_is_refused_in_one_line():
    with pytest.raises(ValueError, match="^input must be of the parameters' type torch.float64, got torch.float32$"):
        layer_of("rnn")(torch.randn(4, 2, 3))


@pytest.mark.parametrize("phi", sorted(PHIS))
def test_second_derivatives_of_ragged_sequences_are_those_of_each_alone(phi):
    tensors = [t if t is None else t.requires_grad_() for t in problem(5, 2, 3, 4, phi)]
    x, u, b, v, h0, c = tensors
    leaves = [t for t in (u, b, v, c) if t is not None]

    def second(*outputs):
        gradients = torch.autograd.grad(sum(out.pow(3).sum() for out in outputs), leaves, create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in gradients), leaves)

    together = second(recurrence(x, u, b, v, h0, c, Plan(phi, (2, 2, 2, 1, 1))))
    parts = ((slice(0, 5), slice(0, 1)), (slice(0, 3), slice(1, 2)))
    alone = second(*(recurrence(x[t, k], u, b, v, h0[k], c, Plan(phi)) for t, k in parts))
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["rnn", "scornn", "urnn", "exprnn"])
def test_batched_gradients_are_those_one_by_one(name):
    layer = ms.nn.create(name, input_size=3, hidden_size=4, dtype=torch.float64)
    x = torch.randn(4, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    out, leaves = layer(x)[0], [x, *layer.parameters()]
    rows = torch.eye(out.numel(), dtype=torch.float64).view(-1, *out.shape)
    batched = torch.autograd.grad(out, leaves, rows, is_grads_batched=True, retain_graph=True)
    for k, row in enumerate(rows):
        for one, other in zip(batched, torch.autograd.grad(out, leaves, row, retain_graph=True), strict=True):
            torch.testing.assert_close(one[k], other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 5), (3, 3), (5, 4), (4, 5)])
def test_a_matrix_of_another_size_is_refused(shape):
    with pytest.raises(ValueError, match=r"^weight_hh must be of 4 rows and columns, got \(\d, \d\)$"):
        torch.func.functional_call(ms.nn.RNN(3, 4), {"weight_hh_l0": torch.zeros(shape)}, (torch.zeros(5, 2, 3),))
