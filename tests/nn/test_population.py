"""A population of networks against the same networks one by one."""

import copy

import pytest
import torch

import mnemoscope as ms
from mnemoscope.nn.members import map_members

NAMES = ["rnn", "scornn", "exprnn", "nnrnn", "full-urnn", "scurnn", "henaff", "lstm", "goru"]


def members(name, size=3, **options):
    return [
        ms.nn.create(
            name,
            input_size=2,
            hidden_size=5,
            dtype=torch.float64,
            generator=torch.Generator().manual_seed(k),
            **options,
        )
        for k in range(size)
    ]


def inputs(size=3, seed=0):
    return torch.randn(size, 6, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
def test_every_member_runs_as_if_alone(name):
    layers = members(name, num_layers=2)
    population = ms.nn.Population(layers)
    x = inputs()
    output, state = population(x)
    again, _ = population(x, state)
    for k, layer in enumerate(layers):
        alone, hx = layer(x[k])
        torch.testing.assert_close(output[k], alone, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(again[k], layer(x[k], hx)[0], rtol=1e-10, atol=1e-10)
    assert sum(p.numel() for p in population.parameters()) == sum(p.numel() for m in layers for p in m.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_twenty_steps_of_training_equal_those_of_each_alone(name):
    layers = members(name)
    population = ms.nn.Population(layers)
    alone = copy.deepcopy(layers)
    together = torch.optim.RMSprop(population.parameters(), lr=1e-2)
    each = [torch.optim.RMSprop(layer.parameters(), lr=1e-2) for layer in alone]
    for step in range(20):
        x = inputs(seed=step)
        together.zero_grad()
        population(x)[0].square().mean((1, 2, 3)).sum().backward()
        together.step()
        population.after_step()
        for k, (layer, optimiser) in enumerate(zip(alone, each, strict=True)):
            optimiser.zero_grad()
            layer(x[k])[0].square().mean().backward()
            optimiser.step()
            layer.after_step()
    for k, layer in enumerate(alone):
        member = population.member(k)
        for key, value in layer.state_dict().items():
            torch.testing.assert_close(member.state_dict()[key], value, rtol=1e-9, atol=1e-9, msg=key)


FORMS = [
    ("rnn", {"nonlinearity": "modrelu", "bias": False}),
    ("rnn", {"nonlinearity": "modrelu", "activation": "depth"}),
    ("rnn", {"activation": "depth", "bidirectional": True}),
    ("rnn", {"checkpoint_every": 2}),
    ("rnn", {"batch_first": True}),
    ("linear-rnn", {"bias": False}),
    ("scornn", {"bidirectional": True}),
    ("exprnn", {"field": "complex"}),
    ("scurnn", {"activation": "depth"}),
    ("urnn", {"product": "structured"}),
    ("ornn", {}),
    ("eurnn", {}),
    ("soft-orth", {"mode": "penalty"}),
    ("henaff", {}),
]


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_a_batched_recurrence_equals_networks_under_vmap(name, options):
    """Outputs, states and all gradients, from given states too."""
    population = ms.nn.Population(members(name, num_layers=2, **options))
    base, x = population._base[0], inputs().requires_grad_()
    stacked = population._stacked()

    def found(run):
        first, hx = run(x, None)
        second, last = run(x.flip(0), hx)
        leaves = [x, *population.parameters()]
        total = (first.square().sum() + second.sin().sum() + torch.view_as_real(last + 0j).sum()).real
        return [first, second, last, *torch.autograd.grad(total, leaves)]

    fast = found(population)
    slow = found(lambda x, hx: map_members(base, stacked, x, hx))
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["rnn", "linear-rnn", "irnn", "orth-rnn"])
def test_members_with_free_matrices_run_without_vmap(name, monkeypatch):
    """It takes a tenth of a step of small networks."""
    population = ms.nn.Population(members(name, num_layers=2))
    monkeypatch.setattr(torch, "vmap", None)
    assert population(inputs())[0].shape == (3, 6, 4, 5)


def test_dropout_differs_between_members():
    layers = members("rnn", num_layers=2, dropout=0.5)
    population = ms.nn.Population([layers[0]] * 2)
    x = inputs(1).expand(2, -1, -1, -1)
    output = population(x)[0]
    assert not torch.equal(output[0], output[1])
    population.eval()
    torch.testing.assert_close(population(x)[0][1], layers[0].eval()(x[1])[0], rtol=1e-10, atol=1e-10)


def test_a_population_can_be_differentiated_forwards_and_mapped():
    population = ms.nn.Population(members("rnn"))
    x, direction = inputs(), inputs(seed=1)
    step = 1e-6
    expected = (population(x + step * direction)[0] - population(x - step * direction)[0]) / (2 * step)
    tangent = torch.func.jvp(lambda x: population(x)[0], (x,), (direction,))[1]
    torch.testing.assert_close(tangent, expected, rtol=1e-7, atol=1e-7)
    many = torch.stack([inputs(seed=k) for k in range(2)])
    mapped = torch.vmap(lambda x: population(x)[0])(many)
    torch.testing.assert_close(mapped, torch.stack([population(x)[0] for x in many]), rtol=1e-10, atol=1e-10)


def test_hooks_of_the_first_network_are_called():
    layers, calls = members("rnn"), []
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    ms.nn.Population(layers)(inputs())
    assert calls


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((3, 1, 4, 6), torch.float64, r"^hx must be a tensor of shape \(1, 4, 5\), got a tensor of shape \(1, 4, 6\)$"),
        ((3, 1, 4, 5), torch.float32, "^hx must be of type torch.float64, got torch.float32$"),
        ((2, 1, 4, 5), torch.float64, r"^hx must be a state with 3 members in front, got shape \(2, 1, 4, 5\)$"),
    ],
)
def test_states_that_do_not_fit_are_refused_in_one_line(shape, dtype, message):
    with pytest.raises(ValueError, match=message):
        ms.nn.Population(members("rnn"))(inputs(), torch.zeros(shape, dtype=dtype))


def test_inputs_of_another_width_are_refused():
    with pytest.raises(ValueError, match="^the last axis of input must be input_size = 2, got 1$"):
        ms.nn.Population(members("rnn"))(inputs()[..., :1])


def test_the_given_networks_stay_as_they_are():
    layers = members("scornn")
    before = [layer.weight_hh_l0.detach().clone() for layer in layers]
    population = ms.nn.Population(layers)
    with torch.no_grad():
        for p in population.parameters():
            p.zero_()
    assert all(torch.equal(layer.weight_hh_l0, v) for layer, v in zip(layers, before, strict=True))


DIFFERENT = {
    "none": [],
    "sizes": [ms.nn.RNN(2, 3), ms.nn.RNN(2, 4)],
    "classes": [ms.nn.RNN(2, 3), ms.nn.IRNN(2, 3)],
    "types": [ms.nn.RNN(2, 3), ms.nn.RNN(2, 3, dtype=torch.float64)],
    "modes": [ms.nn.RNN(2, 3), ms.nn.RNN(2, 3).eval()],
    "a number": [7],
    "no list": ms.nn.RNN(2, 3),
    "a list in a list": [[ms.nn.RNN(2, 3)]],
    "names": {"a": ms.nn.RNN(2, 3)},
    "a population": [ms.nn.Population([ms.nn.RNN(2, 3)])],
}


@pytest.mark.parametrize("layers", DIFFERENT.values(), ids=DIFFERENT)
def test_networks_of_different_kinds_are_refused_in_one_line(layers):
    message = "^layers must be a list of networks of the same class, options, type and mode, got "
    with pytest.raises(ValueError, match=message) as e:
        ms.nn.Population(layers)
    assert "\n" not in str(e.value)


def test_layers_may_come_one_by_one():
    assert ms.nn.Population(ms.nn.RNN(2, 3) for _ in range(4)).size == 4


def test_a_population_follows_its_layers_in_mode_type_and_what_is_frozen():
    layers = members("rnn", num_layers=2, dropout=0.9)
    for layer in layers:
        layer.eval().weight_ih_l0.requires_grad_(False)
    population, x = ms.nn.Population(layers), inputs()
    torch.testing.assert_close(population(x)[0][1], layers[1](x[1])[0])
    assert not population.member(0).training
    assert [p.requires_grad for p in population.parameters()] == [p.requires_grad for p in layers[0].parameters()]
    population.float()
    assert population.member(0).weight_hh_l0.dtype == torch.float32
    torch.testing.assert_close(population(x.float())[0][1].double(), layers[1](x[1])[0], rtol=1e-4, atol=1e-5)
    assert population.train().member(0).training


@pytest.mark.parametrize("x", [None, [1, 2], inputs().numpy()], ids=["None", "list", "array"])
def test_input_that_is_no_tensor_is_refused(x):
    with pytest.raises(ValueError, match=r"^x must be a tensor of shape \(3, time, batch, input_size\), got \w+$"):
        ms.nn.Population(members("rnn"))(x)


@pytest.mark.parametrize("hx", [3, [1, 2]], ids=["number", "list"])
def test_a_state_that_is_none_is_refused(hx):
    with pytest.raises(ValueError, match="^hx must be a state with 3 members in front, got "):
        ms.nn.Population(members("rnn"))(inputs(), hx)


@pytest.mark.parametrize("k", [3, -4, 1.0, None, True, slice(0, 1)])
def test_a_member_that_is_not_there_is_refused(k):
    with pytest.raises(ValueError, match="^k must be the number of a member, 0 to 2, got "):
        ms.nn.Population(members("rnn")).member(k)


def test_a_member_that_diverged_leaves_the_others_as_they_are():
    layers = members("exprnn")
    with torch.no_grad():
        for scale, layer in zip((torch.nan, 10.0, 0.1), layers, strict=True):
            layer.parametrizations.weight_hh_l0.original0.mul_(scale)
    output, _ = ms.nn.Population(layers)(inputs())
    for k in (1, 2):
        torch.testing.assert_close(output[k], layers[k](inputs()[k])[0], rtol=1e-10, atol=1e-10)


def test_input_without_the_members_axis_is_refused():
    with pytest.raises(ValueError, match=r"^x must be a tensor of shape \(3, .*\), got shape \(6, 4, 2\)$"):
        ms.nn.Population(members("rnn"))(inputs()[0])
