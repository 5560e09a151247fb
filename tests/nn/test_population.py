"""A population of networks against the same networks one by one."""

import copy

import pytest
import torch

import mnemoscope as ms

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


def test_the_given_networks_stay_as_they_are():
    layers = members("scornn")
    before = [layer.weight_hh_l0.detach().clone() for layer in layers]
    population = ms.nn.Population(layers)
    with torch.no_grad():
        for p in population.parameters():
            p.zero_()
    assert all(torch.equal(layer.weight_hh_l0, v) for layer, v in zip(layers, before, strict=True))


@pytest.mark.parametrize("layers", [[], [ms.nn.RNN(2, 3), ms.nn.RNN(2, 4)], [ms.nn.RNN(2, 3), ms.nn.IRNN(2, 3)], [7]])
def test_networks_of_different_kinds_are_refused_in_one_line(layers):
    with pytest.raises(
        ValueError, match="^layers must be one or more networks of the same class and options, got"
    ) as e:
        ms.nn.Population(layers)
    assert "\n" not in str(e.value)


def test_input_without_the_members_axis_is_refused():
    with pytest.raises(ValueError, match=r"^x must be of shape \(3, time, batch, input_size\), got \(6, 4, 2\)$"):
        ms.nn.Population(members("rnn"))(inputs()[0])
