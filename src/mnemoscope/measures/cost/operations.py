"""Multiply-adds of whatever runs: every tensor operation is seen, and its multiplications are added up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

__all__ = ["Count", "count"]

_ELEMENTWISE = {
    "mul": 1,
    "div": 1,
    "addcmul": 1,
    "addcdiv": 1,
    "lerp": 1,
    "reciprocal": 1,
    "silu": 1,
    "cumprod": 1,
    "linalg_vector_norm": 1,
    "_softmax": 1,
    "_safe_softmax": 1,
    "native_layer_norm": 3,
}
"""Multiplications per number (of the larger of what goes in and what comes out) of operations on single numbers."""

_HEAVY = (
    *(
        "linalg_",
        "_linalg_",
        "_fft_",
        "_trilinear",
        "convolution",
        "_convolution",
        "mkldnn",
        "_cudnn",
        "cudnn",
        "miopen",
    ),
    *("_thnn", "_scaled_dot_product", "_flash", "_efficient", "_transformer", "_native_multi_head"),
)
"""How operations are named that do more than one multiplication per number; one that has no formula is said."""


class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counter of the multiply-adds that run within it.

    Attributes
    ----------
    products
        Multiply-adds of matrix products, convolutions, Fourier transforms, inverses and solutions.
    elementwise
        Multiplications of single numbers; a complex product is four, a division counts as one.
    uncounted
        Operations that ran and whose multiplications have no known number.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled within it, and what would keep torch.compile out takes two seconds to import.
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = 0
        self.elementwise = 0
        self.uncounted: set[str] = set()

    @property
    def total(self) -> int:
        """All multiply-adds."""
        return self.products + self.elementwise

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name.partition("::")[2].removesuffix("_")
        if func._overloadpacket in flop_registry:
            flops = flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
            self.products += int(flops) // 2 * (4 if _complex_operands(args) else 1)
        elif name in _FORMULAS:
            self.products += round(_FORMULAS[name](*args) * (4 if _complex_operands(args) > 1 else 1))
        elif name in _ELEMENTWISE or (name == "pow" and not isinstance(args[1], Tensor) and args[1] == 2):
            self.elementwise += (
                _ELEMENTWISE.get(name, 1) * _numbers(args, out) * _COMPLEX[min(_complex_operands(args), 2)]
            )
        elif _is_heavy(name, func.namespace):
            self.uncounted.add(name)
        return out


def count(work: Callable[[], Any]) -> Count:
    """Run `work` and count what it does.

    Kernels that do many things at once (torch's LSTM, attention, transformer layers) run in their written-out form.
    """
    found = Count()
    with _written_out(), found:
        work()
    return found


@contextmanager
def _written_out() -> Iterator[None]:
    # With gradients on, torch's transformer layers take their plain path; without oneDNN, its LSTM does.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oneDNN's flags warn of a setting for Intel's GPUs
        with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), torch.enable_grad():
            yield


_COMPLEX = (1, 2, 4)
"""Real multiplications in one, by how many of its factors are complex."""


def _complex_operands(args: Any) -> int:
    return sum(isinstance(leaf, Tensor) and leaf.is_complex() for leaf in tree_leaves(args))


def _numbers(args: Any, out: Any) -> int:
    return max(leaf.numel() for leaf in tree_leaves((args[0], out)) if isinstance(leaf, Tensor))


def _is_heavy(name: str, namespace: str) -> bool:
    if namespace not in ("aten", "prim", "prims"):
        return True
    return name.startswith(_HEAVY) and name != "_linalg_check_errors"


def _batch(matrix: Tensor) -> int:
    return math.prod(matrix.shape[:-2])


def _square(share: float) -> Callable[..., float]:
    return lambda a, *rest: share * _batch(a) * a.shape[-1] ** 3


def _solve(a: Tensor, b: Tensor, *rest: Any) -> float:
    n = a.shape[-1]
    return _batch(a) * n**3 / 3 + n * b.numel()


def _triangular(a: Tensor, b: Tensor, *rest: Any) -> float:
    return a.shape[-1] * b.numel() / 2


def _qr(a: Tensor, *rest: Any) -> float:
    tall, thin = max(a.shape[-2:]), min(a.shape[-2:])
    return 2 * _batch(a) * (tall * thin**2 - thin**3 / 3)


def _fourier(share: float) -> Callable[..., float]:
    def multiplications(x: Tensor, axes: list[int], *rest: Any) -> float:
        length = math.prod(x.shape[axis] for axis in axes)
        return share * x.numel() * math.log2(max(length, 2))

    return multiplications


_FORMULAS: dict[str, Callable[..., float]] = {
    "mv": lambda a, x: a.numel(),
    "addmv": lambda y, a, x: a.numel(),
    "dot": lambda a, b: a.numel(),
    "vdot": lambda a, b: a.numel(),
    "addr": lambda a, x, y: a.numel(),
    "linalg_inv_ex": _square(1.0),
    "linalg_lu_factor_ex": _square(1 / 3),
    "linalg_cholesky_ex": _square(1 / 6),
    "_linalg_solve_ex": _solve,
    "linalg_solve_triangular": _triangular,
    "linalg_qr": _qr,
    # n/2 log2(n) butterflies, each a complex product
    "_fft_c2c": _fourier(2.0),
    "_fft_r2c": _fourier(1.0),
    "_fft_c2r": _fourier(2.0),
}
"""Leading order of the multiply-adds of what torch's own table of products lacks."""
