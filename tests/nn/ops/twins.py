"""What the tests of all operations share: an operation and its naive twin give the same numbers."""

import torch


def ragged(batch, steps, seed=0):
    """Return random lengths, descending."""
    drawn = torch.randint(1, steps + 1, (batch,), generator=torch.Generator().manual_seed(seed))
    return drawn.sort(descending=True).values


def everything(function, tensors, lengths=None, seed=1):
    """Return outputs, last state, and the gradients of a random linear function of both with respect to all tensors."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    parts = function(*leaves, lengths)
    parts = parts if isinstance(parts, tuple) else (parts,)
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in parts]
    total = sum((part * weight.to(part.dtype)).sum() for part, weight in zip(parts, weights, strict=True))
    return (*parts, *torch.autograd.grad(total.real if total.is_complex() else total, leaves))


def assert_twins(fast, slow, tensors, lengths=None, **tolerance):
    """Compare outputs, last state, gradients, that of the initial state among them."""
    pairs = zip(everything(fast, tensors, lengths), everything(slow, tensors, lengths), strict=True)
    for found, wanted in pairs:
        torch.testing.assert_close(found, wanted, **({"rtol": 1e-9, "atol": 1e-9} | tolerance))


def assert_safe_in_float32(function, tensors, error):
    """Compare everything in float32 with float64, relative to the size of each tensor."""
    wide = [tensor.to(torch.complex128 if tensor.is_complex() else torch.float64) for tensor in tensors]
    exact = everything(function, wide)
    for found, wanted in zip(everything(function, tensors), exact, strict=True):
        assert (found.to(wanted.dtype) - wanted).norm().item() <= error * wanted.norm().item()


def assert_vmap_is_a_loop(function, members):
    """Compare the mapped gradients of a scalar made of outputs and last state with those of each member."""

    def scalar(*tensors):
        return sum(part.square().sum() for part in function(*tensors))

    places = tuple(range(len(members[0])))
    gradients = torch.func.grad(scalar, argnums=places)
    together = torch.vmap(gradients)(*(torch.stack(same) for same in zip(*members, strict=True)))
    for k, member in enumerate(members):
        for found, wanted in zip(together, gradients(*member), strict=True):
            torch.testing.assert_close(found[k], wanted, rtol=1e-9, atol=1e-9)
