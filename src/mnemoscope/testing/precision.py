"""Number types: float64 as it is, bfloat16 or a clear refusal."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import Network, Subject

__all__ = ["check_bfloat16", "check_dtype_option", "check_float64"]


@check("create every tensor in forward in the type of the parameters, so that double() is enough")
def check_float64(subject: Subject) -> None:
    """After `double()` all is float64 (complex128), and the numbers are those of float32, more exact."""
    network = subject.build_deep()
    x = subject.inputs(network)
    single = subject.run(network, x)
    double = subject.run(network.double(), x.double())
    _require_type(double, torch.float64, "after double()")
    alike = "make double() the same function with more digits, to the digits of float32"
    require_close(double, single, alike, tolerance=1e-3)


@check("build all parameters and buffers in the type that dtype= says")
def check_dtype_option(subject: Subject) -> None:
    """`dtype=torch.float64` builds a network that is float64 throughout."""
    network = subject.build(dtype=torch.float64)
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        wrong = tensor.dtype in (torch.float32, torch.complex64)
        require(not wrong, f"build {name} in the type that dtype= says, float64, not {tensor.dtype}")
    answer = subject.run(network, subject.inputs(network))
    _require_type(answer, torch.float64, "with dtype=torch.float64")


@check("run in bfloat16, or refuse it with a ValueError of one line")
def check_bfloat16(subject: Subject) -> None:
    """In bfloat16 the numbers are those of float32 to its two digits, forward and backward; or it is refused."""
    network = subject.build_deep().float()
    _round(network)
    x = subject.inputs(network).bfloat16()
    y, _ = subject.run(network, x.float())
    try:
        if subject.has("dtype"):
            subject.build(dtype=torch.bfloat16)
        network = network.bfloat16()
        answer = subject.run(network, x)
    except ValueError as error:
        require("\n" not in str(error), "refuse bfloat16 in one line")
        raise Skipped(f"refused: {error}") from error
    _require_type(answer, torch.bfloat16, "after bfloat16()")
    alike = "compute what needs digits in float32 and round once, so that bfloat16 has its two digits"
    require_close(answer[0].float(), y, alike, tolerance=0.1)
    answer[0].float().sum().backward()
    finite = all(p.grad is None or bool(p.grad.isfinite().all()) for p in network.parameters())
    require(finite, "keep gradients finite in bfloat16")


def _round(network: Network) -> None:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.bfloat16())


def _require_type(answer: object, real: torch.dtype, when: str) -> None:
    complex_type = torch.complex128 if real == torch.float64 else torch.complex64
    for leaf in tree_leaves(answer):
        wanted = complex_type if leaf.is_complex() else real
        exact = not leaf.is_floating_point() and not leaf.is_complex()
        require(exact or leaf.dtype == wanted, f"return {wanted} {when}, not {leaf.dtype}")
