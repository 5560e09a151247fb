"""What torch's own tools do to a torch.nn.RNN they can do to every network here."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import mnemoscope as ms

NAMES = ms.nn.names("recurrent")
EVERY = ms.nn.names()


def build(name, **options):
    cls = ms.nn.get(name)
    if cls.kind == "classifier":
        return cls(**cls.usual, **options)
    if getattr(cls, "grows", False):
        options |= {"capacity": 8}
    return ms.nn.create(name, **cls.small_sizes, **options)


def inputs(layer):
    if layer.kind == "classifier":
        return torch.randn(2, layer.length, layer.input_size)
    return torch.randn(getattr(layer, "panels", 5), 2, *layer.input_shape)


def answers(layer, x):
    found = layer(x)
    return found[0] if layer.kind == "recurrent" else found


@pytest.mark.parametrize("name", EVERY)
def test_a_layer_can_be_built_without_memory_and_computes_nothing_with_it(name):
    layer = build(name, device="meta")
    assert all(parameter.is_meta for parameter in layer.parameters())
    with pytest.raises(ValueError, match="has no values yet: .* on the meta device; fill it by load_state_dict"):
        layer(inputs(layer))


@pytest.mark.parametrize("name", ["exprnn", "nnrnn", "goru", "memrnn", "sab", "relrnn"])
def test_without_memory_a_layer_says_what_shape_it_would_give(name):
    layer = build(name, device="meta")
    y = layer(inputs(layer).to("meta"))[0]
    assert (y.is_meta, y.shape) == (True, build(name)(inputs(layer))[0].shape)


def test_a_layer_filled_in_part_computes_nothing():
    state = {key: value for key, value in build("exprnn").state_dict().items() if "weight_hh" not in key}
    layer = build("exprnn", device="meta")
    layer.load_state_dict(state, strict=False, assign=True)
    with pytest.raises(ValueError, match="^ExpRNN has no values yet: parametrizations.weight_hh_l0.original0 is on"):
        layer(torch.randn(5, 2, 3))


def assigned(name, given):
    empty = build(name, device="meta")
    empty.load_state_dict(given.state_dict(), assign=True)
    return empty


def assigned_in_a_context(name, given):
    with torch.device("meta"):
        empty = build(name)
    empty.load_state_dict(given.state_dict(), assign=True)
    return empty


def emptied(name, given):
    layer = build(name, device="meta").to_empty(device="cpu")
    for tensor in (*layer.parameters(), *layer.buffers()):
        tensor.detach().fill_(7)
    layer.reset_parameters(torch.Generator().manual_seed(3))
    return layer


@pytest.mark.parametrize("way", [assigned, assigned_in_a_context, emptied])
@pytest.mark.parametrize("name", EVERY)
def test_a_layer_built_without_memory_is_the_layer_built_with_it(name, way):
    given = build(name, generator=torch.Generator().manual_seed(3))
    layer = way(name, given)
    x = inputs(layer)
    assert not any(tensor.is_meta for tensor in (*layer.parameters(), *layer.buffers()))
    assert torch.equal(answers(layer, x), answers(given, x))
    layer.reset_parameters(torch.Generator().manual_seed(4))
    given.reset_parameters(torch.Generator().manual_seed(4))
    assert torch.equal(answers(layer, x), answers(given, x))


@pytest.mark.parametrize("name", EVERY)
def test_copies_and_types(name):
    layer = build(name)
    x = inputs(layer)
    y = answers(layer, x)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer).double().float()):
        assert torch.equal(answers(twin, x), y)
    loaded = build(name, dtype=torch.float64)
    loaded.load_state_dict(layer.state_dict())
    torch.testing.assert_close(answers(loaded, x.double()), answers(layer.double(), x.double()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["rnn", "scornn", "lstm"])
def test_a_layer_can_be_traced(name):
    layer = build(name)
    x = torch.randn(5, 2, *layer.input_shape)
    torch.testing.assert_close(torch.jit.trace(layer, (x,))(2 * x)[0], layer(2 * x)[0])


def test_a_weight_can_be_pruned():
    layer, x = build("rnn"), torch.randn(5, 2, 3)
    prune.l1_unstructured(layer, "weight_hh_l0", 0.5)
    assert int((layer.weight_hh_l0 == 0).sum()) == 8
    layer(x)[0].sum().backward()
    assert torch.equal(layer.weight_hh_l0_orig.grad == 0, layer.weight_hh_l0 == 0)
    before = layer(x)[0]
    prune.remove(layer, "weight_hh_l0")
    assert torch.equal(layer(x)[0], before)
    assert sorted(dict(layer.named_parameters())) == ["bias_l0", "weight_hh_l0", "weight_ih_l0"]


def test_a_computed_matrix_is_pruned_once_it_is_plain():
    layer, x = build("exprnn"), torch.randn(5, 2, 3)
    with pytest.raises(ValueError, match=r"^weight_hh_l0 is computed .*: call remove_parametrizations\(\) first$"):
        prune.random_unstructured(layer, "weight_hh_l0", 0.5)
    assert layer(x)[0].shape == (5, 2, 4)
    prune.random_unstructured(layer.remove_parametrizations(), "weight_hh_l0", 0.5)
    assert int((layer.weight_hh_l0 == 0).sum()) >= 8


def test_a_parameter_takes_the_place_of_another_and_a_tensor_gives_its_values():
    layer = build("rnn")
    first, new = layer.weight_hh_l0, nn.Parameter(torch.eye(4))
    layer.weight_hh_l0 = torch.zeros(4, 4)
    assert layer.weight_hh_l0 is first
    layer.weight_hh_l0 = new
    assert layer.weight_hh_l0 is new
    with pytest.raises(ValueError, match=r"^weight_hh_l0 must be of shape \(4, 4\), got \(5, 5\)$"):
        layer.weight_hh_l0 = nn.Parameter(torch.eye(5))


def test_a_parametrisation_of_the_users_own():
    layer = parametrizations.weight_norm(build("rnn"), "weight_hh_l0")
    assert layer(torch.randn(5, 2, 3))[0].shape == (5, 2, 4)
    assert layer.penalty() == 0
    layer.after_step()
    with pytest.raises(ValueError, match=r"cannot be pickled: save its state_dict\(\)$"):
        pickle.dumps(layer)
    before = layer.weight_hh_l0.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(layer.weight_hh_l0, before)
    pruned = prune.l1_unstructured(build("rnn"), "weight_hh_l0", amount=0.5)
    with pytest.raises(ValueError, match="^weight_hh_l0 is no parameter any more"):
        pruned.reset_parameters()


def gradients(layer, y):
    y.square().mean().backward()
    found = {name: p.grad for name, p in layer.named_parameters() if p.grad is not None}
    layer.zero_grad()
    return found


@pytest.mark.parametrize("name", ["exprnn", "goru", "lstm", "lru", "gla", "memrnn", "sab", "relrnn"])
def test_a_checkpointed_layer_has_the_same_gradients(name):
    layer = build(name)
    x = torch.randn(5, 2, 3, requires_grad=True)
    wanted = gradients(layer, layer(x)[0])
    for reentrant in (True, False):
        found = gradients(layer, checkpoint(layer, x, use_reentrant=reentrant)[0])
        torch.testing.assert_close(found, wanted)


def replica(module):
    """Return what torch.nn.DataParallel makes of a module for each GPU: parameters are tensors made of its own."""
    twins = {part: part._replicate_for_data_parallel() for part in module.modules()}
    for part, twin in twins.items():
        twin._former_parameters = {name: p * 1 for name, p in part._parameters.items() if p is not None}
        for name, value in (*twin._former_parameters.items(), *part._buffers.items()):
            setattr(twin, name, value)
        for name, below in part._modules.items():
            setattr(twin, name, twins[below])
    return twins[module]


@pytest.mark.parametrize("name", ["rnn", "exprnn", "scornn", "goru", "lstm", "lru", "relrnn", "relational-lstm"])
def test_a_replica_for_many_gpus_is_the_same_function(name):
    layer = build(name).eval()
    x = inputs(layer)
    wanted = gradients(layer, answers(layer, x))
    torch.testing.assert_close(gradients(layer, answers(replica(layer), x)), wanted)


def _fill(layer):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7.0)


@pytest.mark.parametrize("name", ["rnn", "scornn"])
def test_shared_memory_stays_shared_in_another_process(name):
    layer = build(name).share_memory()
    process = torch.multiprocessing.get_context("spawn").Process(target=_fill, args=(layer,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert all(bool((parameter == 7).all()) for parameter in layer.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_the_last_state_has_memory_of_its_own(name):
    layer = build(name)
    x = torch.randn(5, 2, *layer.input_shape)
    output, hx = layer(x)
    before = output.clone()
    for leaf in tree_leaves(hx):
        leaf.detach_().zero_()
    assert torch.equal(output, before)
    output.sum().backward()


@pytest.mark.parametrize("name", ["urnn", "scurnn"])
def test_complex_networks_refuse_16_bits_in_one_line(name):
    x, message = torch.randn(5, 2, 3), r"^a complex network must be float32 or float64 .*, got torch.bfloat16$"
    with pytest.raises(ValueError, match=message):
        build(name).bfloat16()(x.bfloat16())


CONSTRAINED = ["ornn", "eurnn", "urnn", "full-urnn", "scurnn", "scornn", "exprnn", "soft-orth", "nnrnn", "goru"]


@pytest.mark.parametrize("name", CONSTRAINED)
def test_writing_into_a_computed_matrix_is_refused_and_names_the_way(name):
    layer = build(name)
    writes = (
        nn.init.zeros_ if name in ("urnn", "scurnn") else nn.init.orthogonal_,
        lambda v: v.mul_(2),
        lambda v: v.copy_(torch.eye(4)),
        lambda v: v.__setitem__(0, 1.0),
        lambda v: torch.add(v, v, out=v),
        lambda v: nn.init.uniform_(v, 0.0, 1.0),
        lambda v: v.data.fill_(1.0),
        lambda v: setattr(v, "data", torch.eye(4)),
        lambda v: v[0].zero_(),
        lambda v: v.T.zero_(),
        lambda v: v.chunk(2)[1].zero_(),
        lambda v: torch._foreach_mul_([v], 2.0),
    )
    for write in writes:
        with torch.no_grad(), pytest.raises(ValueError, match=r"set it by layer\.weight_hh_l0 = matrix$"):
            write(layer.weight_hh_l0)
    assert type(layer.weight_hh_l0 + 1) is torch.Tensor
    copied = layer.weight_hh_l0.detach()
    copied[0].mul_(2)  # what is detached is the caller's
    for twin in (copy.deepcopy(copied), pickle.loads(pickle.dumps(copied))):
        assert type(twin) is torch.Tensor


@pytest.mark.parametrize("name", CONSTRAINED)
def test_a_kept_matrix_follows_its_parameters(name):
    layer = build(name)
    x = torch.randn(5, 2, *layer.input_shape)
    for change in (
        lambda p: p.data.mul_(0.5),
        lambda p: p.data.copy_(torch.rand_like(p)),
        lambda p: p.detach().add_(1),
    ):
        with torch.no_grad():
            layer(x)  # keeps the matrix
            for parameter in layer.parameters():
                change(parameter)
            kept = layer(x)[0]
        torch.testing.assert_close(kept, layer(x)[0].detach())
    layer.reset_parameters()
    with torch.no_grad():
        kept = layer(x)[0]
    torch.testing.assert_close(kept, layer(x)[0].detach())


def test_within_cached_a_map_is_computed_once():
    layer, x = build("exprnn"), torch.randn(1, 2, 3)
    with layer.cached():
        before = layer(x)[0]
        next(p for name, p in layer.named_parameters() if "weight_hh" in name).data.add_(1.0)
        assert torch.equal(layer(x)[0], before)
    assert not torch.equal(layer(2 * x, torch.ones(1, 2, 4))[0], before)


def test_within_cached_what_was_made_without_gradients_is_not_trained_with():
    layer, x = build("exprnn"), torch.randn(2, 2, 3)
    with layer.cached():
        with torch.no_grad(), layer.cached():
            layer(x)
        found = gradients(layer, layer(x)[0])
    assert set(found) == dict(layer.named_parameters()).keys()


def test_two_layers_share_a_matrix_by_its_parametrisation():
    first, second = build("exprnn"), build("exprnn")
    second.parametrizations["weight_hh_l0"] = first.parametrizations["weight_hh_l0"]
    second(torch.randn(5, 2, 3))[0].sum().backward()
    (angle,) = (p for name, p in first.named_parameters() if "weight_hh" in name)
    assert angle.grad is not None
    with torch.no_grad():
        angle.add_(0.5)
    assert torch.equal(first.weight_hh_l0, second.weight_hh_l0)
    for twins in (copy.deepcopy((first, second)), pickle.loads(pickle.dumps((first, second)))):
        with torch.no_grad():
            next(twins[0].parametrizations.parameters()).add_(0.5)
        assert torch.equal(twins[0].weight_hh_l0, twins[1].weight_hh_l0)
        assert not torch.equal(twins[0].weight_hh_l0, first.weight_hh_l0)


def test_two_weights_of_one_layer_that_share_a_map_are_trained_and_penalised_once(tmp_path):
    alone, tied = ms.nn.NNRNN(4, 4), ms.nn.NNRNN(4, 4, 2)
    for name in ("weight_hh_l0", "weight_hh_l1"):
        tied.parametrizations[name] = alone.parametrizations["weight_hh_l0"]
    assert tied.penalty() == alone.penalty()
    parameters = [p for group in tied.parameter_groups(lr=0.1) for p in group["params"]]
    assert len(parameters) == len(set(parameters)) == len(list(tied.parameters()))
    with pytest.raises(ValueError, match="^weights of nnrnn share memory, which no file can tell"):
        ms.nn.save(tied, tmp_path / "tied.safetensors")


@pytest.mark.parametrize("name", NAMES)
def test_one_step_without_gradients_is_the_first_of_many(name):
    layer = build(name).eval()
    x = torch.randn(3, 2, *layer.input_shape)
    with torch.no_grad():
        outputs, state = [], None
        for now in x:
            y, state = layer(now[None]) if state is None else layer(now[None], state)
            outputs.append(y)
    torch.testing.assert_close(torch.cat(outputs), layer(x)[0].detach())


PLAIN = [(name, {}) for name in CONSTRAINED] + [(name, {"product": "structured"}) for name in ("ornn", "eurnn", "urnn")]


@pytest.mark.parametrize(("name", "options"), PLAIN)
def test_without_its_parametrisation_a_layer_is_saved_loaded_and_pickled(name, options, tmp_path):
    layer = build(name, **options)
    x = torch.randn(5, 2, *layer.input_shape)
    y = layer(x)[0]
    parametrize.remove_parametrizations(layer, "weight_hh_l0")
    assert type(layer.weight_hh_l0) is nn.Parameter
    ms.nn.save(layer, tmp_path / "plain.safetensors")
    for twin in (layer, ms.nn.load(tmp_path / "plain.safetensors"), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(twin(x)[0], y)


@pytest.mark.parametrize("trained", [True, False])
def test_removed_without_gradients_or_frozen_a_matrix_is_still_a_parameter(trained):
    layer = build("exprnn").requires_grad_(trained)
    with torch.no_grad():
        layer.remove_parametrizations()
    assert [(name, p.requires_grad) for name, p in layer.named_parameters()][-1] == ("weight_hh_l0", trained)


def test_a_penalty_on_the_matrix_compiles_in_one_graph():
    layer = build("exprnn")
    square = torch.compile(lambda: layer.weight_hh_l0.square().sum(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(square(), torch.tensor(4.0))


def test_whole_models_are_loaded_by_torch_with_weights_only(tmp_path):
    model = nn.Sequential(build("nnrnn"))
    torch.save(model, tmp_path / "model.pt")
    with torch.serialization.safe_globals([*ms.nn.safe_globals(), nn.Sequential]):
        loaded = torch.load(tmp_path / "model.pt")
    x = torch.randn(5, 2, 3)
    assert torch.equal(loaded[0](x)[0], model[0](x)[0])


@pytest.mark.parametrize(
    "theirs",
    [
        nn.RNN(3, 4, 2),
        nn.RNN(3, 4, nonlinearity="relu", bidirectional=True),
        nn.LSTM(3, 4, 2, True, True),
        nn.LSTM(3, 4, proj_size=2, bidirectional=True),
        nn.LSTM(3, 4, bias=False),
        nn.GRU(3, 4, 2, batch_first=True),
    ],
    ids=lambda module: repr(module).replace("3, 4, ", ""),
)
def test_layers_go_to_torch_and_come_from_it(theirs):
    cls = getattr(ms.nn, type(theirs).__name__)
    ours, x = cls.from_torch(theirs), torch.randn(5, 5, 3)
    torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.to_torch()(x), theirs(x))
    assert ours.mode == theirs.mode
    ours.flatten_parameters()
    if type(theirs) is not nn.RNN:  # which has two biases
        found, wanted = ([[w.shape for w in layer] for layer in module.all_weights] for module in (ours, theirs))
        assert found == wanted


@pytest.mark.parametrize("strict", [True, False])
def test_two_biases_are_added_up_with_a_word(strict):
    theirs, ours = nn.RNN(3, 4), build("rnn")
    with pytest.warns(UserWarning, match="torch's two biases were added up to bias_l0"):
        ours.load_state_dict(theirs.state_dict(), strict=strict)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])


def test_calls_as_torch_takes_them():
    layer = ms.nn.LSTM(3, 5, 2, True, True)
    assert (layer.bias, layer.batch_first) == (True, True)
    assert repr(ms.nn.create("lstm", 3, 5, 2)) == "LSTM(3, 5, num_layers=2)"
    x, (h, c) = torch.randn(2, 4, 3), layer.init_state(2)
    torch.testing.assert_close(layer(x, [h, c])[0], layer(x, (h, c))[0])


@pytest.mark.parametrize("name", ["urnn", "scurnn"])
def test_complex_layers_compute_in_float32_under_autocast(name):
    layer = build(name)
    x = torch.randn(5, 2, *layer.input_shape)
    with torch.autocast("cpu", torch.bfloat16):
        y, h = layer(x.bfloat16())
        again, _ = layer(x.bfloat16(), h)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, layer(x.bfloat16().float())[0])
    assert again.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_a_step_is_that_of_a_sequence(name):
    """Both compute in the type of the input, none of the step's products is rounded behind its back."""
    layer = build(name)
    dtypes = [torch.float32] if layer.field == "complex" else [torch.float32, torch.bfloat16]
    for dtype in dtypes:
        x = torch.randn(1, 2, *layer.input_shape, dtype=dtype)
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            state = layer.init_state(2, dtype=dtype)
            y, _ = layer(x, state)
            for step in (layer.step, layer.stepper()):
                assert step(x[0], state)[0].dtype == dtype
                torch.testing.assert_close(step(x[0], state)[0], y[0])
