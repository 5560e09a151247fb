"""The page on swapping a layer into existing code, line by line; export and compilation of what it says."""

import doctest
from io import BytesIO
from pathlib import Path

import pytest
import torch
from torch.nn.utils import parametrize
from torch.utils._pytree import tree_leaves

import mnemoscope as ms

PAGE = Path(__file__).parents[2] / "docs" / "swapping.md"
EXPORTED = ["rnn", "exprnn", "nnrnn", "lstm", "gru", "goru", "rac", "lru", "mingru", "gla", "deltanet"]


def test_every_line_of_the_page_runs():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert tried > 15
    assert failed == 0


@pytest.mark.parametrize("name", EXPORTED)
def test_a_layer_is_exported_once_its_maps_are_removed(name):
    layer, x = ms.nn.create(name, 3, 4).eval(), torch.randn(4, 2, 3)
    y = layer(x)[0]
    for weight in list(getattr(layer, "parametrizations", {})):
        parametrize.remove_parametrizations(layer, weight)
    torch.testing.assert_close(torch.export.export(layer, (x,)).module()(x)[0], y)


def small(name, **options):
    cls = ms.nn.get(name)
    return ms.nn.create(name, **cls.small_sizes, **({"capacity": 12} if cls.grows else {}), **options).eval()


@pytest.mark.parametrize("name", ["rnn", "exprnn", "lstm", "lru", "gla", "memrnn"])
def test_without_gradients_a_layer_is_exported_for_any_length_and_batch(name):
    layer = small(name).remove_parametrizations()
    shapes = ({0: torch.export.Dim("steps", min=2), 1: torch.export.Dim("batch", min=2)},)
    with torch.no_grad():
        program = torch.export.export(layer, (torch.randn(4, 3, 3),), dynamic_shapes=shapes).module()
        for steps, batch in ((4, 3), (9, 2)):
            x = torch.randn(steps, batch, 3)
            torch.testing.assert_close(tree_leaves(program(x)), tree_leaves(layer(x)), atol=1e-5, rtol=1e-4)


def test_exports_of_one_length_leave_others_any_length():
    shapes = ({0: torch.export.Dim("steps", min=2), 1: torch.export.Dim("batch", min=2)},)
    with torch.no_grad():
        for steps in (3, 4):  # what torch's scan compiles for these is not what an export of any length may find
            torch.export.export(small("rnn"), (torch.randn(steps, 2, 3),))
        for steps in (3, 4):
            program = torch.export.export(small("rnn"), (torch.randn(steps, 2, 3),), dynamic_shapes=shapes).module()
            assert program(torch.randn(9, 5, 3))[0].shape == (9, 5, 4)


def test_an_exported_memory_that_is_full_gives_nan():
    layer = small("memrnn")
    shapes = ({0: torch.export.Dim("steps", min=2)},)
    with torch.no_grad():
        program = torch.export.export(layer, (torch.randn(4, 3, 3),), dynamic_shapes=shapes).module()
        y = program(torch.randn(14, 3, 3))[0]
    assert y[:12].isfinite().all()
    assert y[12:].isnan().all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ms.nn.names("recurrent"))
def test_a_trace_is_right_for_its_length_and_refuses_others(name):
    layer = small(name)
    x, other = (torch.randn(steps, 2, *layer.input_shape) for steps in (3, 5))
    traced = torch.jit.trace(layer, (x,), check_trace=False)
    torch.jit.save(traced, BytesIO())
    torch.testing.assert_close(traced(2 * x)[0], layer(2 * x)[0], atol=1e-5, rtol=1e-4)
    if layer.any_length_traced:
        torch.testing.assert_close(traced(other)[0], layer(other)[0])
    else:
        with pytest.raises(Exception, match="this layer was traced for 3 steps, got 5: use torch.export"):
            traced(other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cprnn", "mingru", "exprnn"])
def test_a_trace_with_a_state_is_made_again_as_it_was(name):
    layer, x = small(name), torch.randn(3, 2, 3)
    hx = layer(x)[1].detach()
    traced = torch.jit.trace(small(name), (x, hx))  # traces twice, and compares
    torch.testing.assert_close(traced(x, hx / 2)[0].shape, layer(x, hx / 2)[0].shape)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dtype", "ulps"), [(torch.float32, 4), (torch.bfloat16, 4)])
@pytest.mark.parametrize("name", ["rnn", "exprnn", "lstm", "gru", "goru"])
def test_a_trace_is_the_layer_to_rounding(name, dtype, ulps):
    """The trace keeps the plain loop, the layer runs the fused one: sums are of another order."""
    layer, x = small(name).to(dtype), torch.randn(3, 2, 3).to(dtype)
    traced = torch.jit.trace(layer, (x,), check_trace=False)
    found, wanted = traced(2 * x)[0], layer(2 * x)[0]
    assert (found - wanted).abs().max() <= ulps * torch.finfo(dtype).eps * wanted.abs().max().clamp(min=1)


@pytest.mark.filterwarnings("ignore")
def test_a_trace_of_one_step_without_gradients_is_right_for_many():
    layer, x = small("lstm"), torch.randn(4, 2, 3)
    with torch.no_grad():
        traced = torch.jit.trace(layer, (x[:1],), check_trace=False)
        torch.testing.assert_close(traced(x)[0], layer(x)[0])


@pytest.mark.parametrize("name", ["rnn", "lstm", "exprnn", "lru", "relrnn", "matrixrnn"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_mask_says_where_sequences_end(name, batch_first):
    layer, lengths = small(name, batch_first=batch_first), [2, 5, 3]
    x = torch.randn(3, 5, *layer.input_shape)
    alive = torch.arange(5) < torch.tensor(lengths)[:, None]
    y, state = layer(x, None, alive) if batch_first else layer(x.transpose(0, 1), mask=alive.T)
    y, flat = y if batch_first else y.transpose(0, 1), layer.flatten_state(state)
    assert not y[~alive].any()
    for i, steps in enumerate(lengths):
        one = x[i : i + 1, :steps]
        alone, last = layer(one if batch_first else one.transpose(0, 1))
        torch.testing.assert_close(y[i, :steps], alone.squeeze(0 if batch_first else 1), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(flat[i], layer.flatten_state(last)[0], atol=1e-5, rtol=1e-4)


def test_masks_that_say_something_else_are_refused():
    layer, x = small("rnn"), torch.randn(4, 2, 3)
    holes = torch.tensor([[True, False, True, True]] * 2).T
    with pytest.raises(ValueError, match="^mask must be True from the first step of each sequence to its end"):
        layer(x, mask=holes)
    with pytest.raises(
        ValueError, match=r"^mask must be booleans of shape \(4, 2\), for batched input, got torch.int64"
    ):
        layer(x, mask=holes.long())


def test_the_fourth_argument_of_rnn_is_torchs():
    theirs, ours = torch.nn.RNN(3, 4, 2, "relu", False, True), ms.nn.RNN(3, 4, 2, "relu", False, True)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("name", ["rnn", "exprnn", "lstm", "lru"])
def test_a_state_dict_of_another_kind_or_size_says_which_keys(name):
    layer = small(name)
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(ms.nn.create(name, 3, 6).state_dict())
    assert all(key in str(caught.value) for key, w in layer.state_dict().items() if 4 in w.shape)
    other = ms.nn.create("mirnn", 3, 4).state_dict()
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(other)
    for key in set(layer.state_dict()) ^ set(other):
        assert key in str(caught.value)


@pytest.mark.parametrize("name", ["rnn", "exprnn", "lru", "mingru", "gla", "urnn"])
def test_a_layer_compiles_in_one_graph(name):
    layer, x = ms.nn.create(name, 3, 4), torch.randn(3, 2, 3)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="aot_eager")(x)[0], layer(x)[0])


def test_scripting_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^RNN cannot be scripted by torch\.jit\.script: use torch\.export\.export$"):
        torch.jit.script(ms.nn.RNN(3, 4))


@pytest.mark.parametrize("name", ["exprnn", "scornn", "nnrnn", "urnn"])
def test_a_state_that_is_carried_on_grows_with_the_root_of_time_unless_phi_saturates(name):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1600, 64, 3, generator=generator)
    keeps, bounds = (ms.nn.create(name, 3, 16, nonlinearity=phi, generator=generator) for phi in ("identity", "tanh"))
    with torch.no_grad():
        y, bounded = keeps(x)[0].square().sum(-1).mean(1), bounds(x)[0]
    assert 3 < y[1599] / y[399] < 5  # |h|^2 adds up: 4 times as many steps
    assert bounded.abs().max() <= 1
    assert (keeps.saturates, bounds.saturates) == (False, True)
