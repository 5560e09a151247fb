"""The optimisers on one vector against torch's own, and stacked ones against each member alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.training.optimisers import Adam, Clipping, RMSprop

SHAPES = ((3, 4), (4,), (2, 2, 2), ())


def drawn(seed, *front):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn((*front, *shape), generator=generator, dtype=torch.float64) for shape in SHAPES]


def torch_steps(make, parameters, rates, gradients):
    groups = [{"params": [p], "lr": rate} for p, rate in zip(parameters, rates, strict=True)]
    optimiser = make(groups)
    for step in gradients:
        for p, g in zip(parameters, step, strict=True):
            p.grad = g.clone()
        optimiser.step()
    return parameters


def our_steps(optimiser, gradients, clipping=None, members=None):
    for step in gradients:
        optimiser.take(step)
        if clipping is not None:
            clipping(optimiser, [0], members)
        optimiser.step()
    return optimiser.parameters


@given(
    alpha=st.floats(0, 0.999),
    eps=st.floats(1e-10, 1e-2),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    rates=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_rmsprop_is_torchs(alpha, eps, momentum, rates):
    gradients = [drawn(k) for k in range(1, 8)]
    wanted = torch_steps(
        lambda groups: torch.optim.RMSprop(groups, alpha=alpha, eps=eps, momentum=momentum), drawn(0), rates, gradients
    )
    ours = our_steps(RMSprop(drawn(0), rates, alpha=alpha, eps=eps, momentum=momentum), gradients)
    for a, b in zip(ours, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@given(
    betas=st.tuples(st.floats(0, 0.99), st.floats(0, 0.999)),
    eps=st.floats(1e-10, 1e-2),
    rates=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_adam_is_torchs(betas, eps, rates):
    gradients = [drawn(k) for k in range(1, 8)]
    wanted = torch_steps(lambda groups: torch.optim.Adam(groups, betas=betas, eps=eps), drawn(0), rates, gradients)
    ours = our_steps(Adam(drawn(0), rates, betas=betas, eps=eps), gradients)
    for a, b in zip(ours, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", [RMSprop, Adam])
@pytest.mark.parametrize("clipping", [None, Clipping(norm=0.7), Clipping(value=0.3), Clipping(largest=0.9)])
def test_stacked_members_move_as_each_alone(kind, clipping):
    members, rates = 3, [0.1, 0.2, 0.003]
    gradients = [drawn(k, members) for k in range(1, 6)]
    stacked = our_steps(
        kind(drawn(0, members), [torch.tensor(rates, dtype=torch.float64)] * 4), gradients, clipping, members
    )
    for k in range(members):
        own = [[g[k] for g in step] for step in gradients]
        alone = our_steps(kind([p[k].clone() for p in drawn(0, members)], [rates[k]] * 4), own, clipping)
        for a, b in zip(stacked, alone, strict=True):
            torch.testing.assert_close(a[k], b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [RMSprop, Adam])
def test_kept_members_go_on_with_their_own_state(kind):
    gradients = [drawn(k, 3) for k in range(1, 6)]
    rates = [torch.full((3,), 0.1).double()] * 4
    whole = kind(drawn(0, 3), rates)
    our_steps(whole, gradients[:3])
    index = torch.tensor([2, 0])
    rest = whole.kept([p[index].clone() for p in whole.parameters], [rate[:2] for rate in rates], index)
    our_steps(rest, [[g[index] for g in step] for step in gradients[3:]])
    our_steps(whole, gradients[3:])
    for a, b in zip(rest.parameters, whole.parameters, strict=True):
        torch.testing.assert_close(a, b[index], rtol=0, atol=0)


def test_clipping_is_torchs():
    gradient = drawn(1)
    parameters = drawn(0)
    for p, g in zip(parameters, gradient, strict=True):
        p.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    optimiser = RMSprop(drawn(0), [0.1] * 4)
    optimiser.take(gradient)
    Clipping(norm=0.5)(optimiser, [], None)
    for ours, p in zip(optimiser.gradients, parameters, strict=True):
        torch.testing.assert_close(ours, p.grad, rtol=1e-14, atol=0)


def test_the_largest_entry_of_recurrent_matrices_is_held():
    optimiser = RMSprop(drawn(0), [0.1] * 4)
    gradient = [20 * g for g in drawn(1)]
    optimiser.take(gradient)
    Clipping(largest=10.0)(optimiser, [0], None)
    assert float(optimiser.gradients[0].abs().max()) == pytest.approx(10.0)
    torch.testing.assert_close(optimiser.gradients[0], gradient[0] * 10 / gradient[0].abs().max())
    torch.testing.assert_close(optimiser.gradients[1], gradient[1])


def test_a_gradient_that_is_not_there_is_zero():
    optimiser = RMSprop(drawn(0), [0.1] * 4)
    optimiser.take([None, *drawn(1)[1:]])
    optimiser.step()
    torch.testing.assert_close(optimiser.parameters[0], drawn(0)[0])
    assert not torch.equal(optimiser.parameters[1], drawn(0)[1])
