"""State inventory: every tensor that is carried, its size and growth, what of it is read, and what can be dropped."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.inventory.written import Written, grown_states, written_by_forward
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import drive
from mnemoscope.nn.network import Network
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["StateInventory", "state_inventory"]

_WHAT = "state_inventory"
_STEPS = (16, 128)
"""Least and most steps over which a number may be read later."""

_COMPARED = 2048
"""Numbers in a state up to which each is compared with all others."""

_NAMED = 6


@result
class StateInventory(Result):
    """Everything that a network carries from step to step, per example.

    Attributes
    ----------
    names, shapes, dtypes
        Of the tensors, as the network stores them.
    numbers, bits
        Real numbers in each (two for a complex one, none for integers), and its bits.
    growth
        p of numbers ~ T^p with the length T of the sequence: 0 for a tensor of fixed size.
    outside
        Whether it is no part of the state that the network returns, but written into the module by its forward.
    read
        Numbers on which the output at the next step depends, by their derivatives; -1 where there are none.
    used
        Numbers on which any later output depends.
    still
        Numbers that never change, whatever the inputs.
    copies
        Numbers that are others times a factor.
    droppable
        Numbers of the flat state that no later output depends on, that never change, or that are copies.
    unread
        Why a state that the module seems to carry was left alone; empty where there is none.
    """

    measure: ClassVar[str] = "state-inventory"

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    numbers: Int[np.ndarray, " tensor"]
    bits: Int[np.ndarray, " tensor"]
    growth: Float[np.ndarray, " tensor"]
    outside: Bool[np.ndarray, " tensor"]
    read: Int[np.ndarray, " tensor"]
    used: Int[np.ndarray, " tensor"]
    still: Int[np.ndarray, " tensor"]
    copies: Int[np.ndarray, " tensor"]
    droppable: Int[np.ndarray, " number"]
    unread: str = ""

    @property
    def size(self) -> int:
        """Real numbers in all."""
        return int(self.numbers.sum())

    @property
    def ever_read(self) -> int:
        """Numbers on which some later output depends."""
        return int(self.used[self.used > 0].sum())

    def __str__(self) -> str:
        if not self.names:
            return f"its state was not read: {self.unread}" if self.unread else "it carries nothing from step to step"
        grows = [f"{name} grows as T^{p:.2g}" for name, p in zip(self.names, self.growth, strict=True) if p > 0]
        size = f"state = {self._product()} real numbers ({int(self.bits.sum()):,} bits)"
        following = int(self.read[self.read > 0].sum())
        looked = f", of which {self.ever_read:,} are ever read, {following:,} by the next output"
        said = [size + (looked if (self.read >= 0).any() else ""), *grows]
        hidden = [name for name, outside in zip(self.names, self.outside, strict=True) if outside]
        if hidden:
            said.append(f"{', '.join(hidden)} written by forward outside the state")
        if self.unread:
            said.append(f"its own state was not read: {self.unread}")
        if len(self.droppable):
            said.append(f"{len(self.droppable):,} can be dropped ({self._why()})")
        return "; ".join(said)

    def _product(self) -> str:
        """Return the size as a product where all tensors have one size: ``2 x 64``."""
        counted = [int(n) for n in self.numbers if n]
        same = len(counted) > 1 and len(set(counted)) == 1
        return f"{len(counted)} x {counted[0]:,}" if same else f"{self.size:,}"

    def _why(self) -> str:
        unread = self.size - self.ever_read
        parts = {
            "never read": unread,
            "never change": int(self.still.sum()),
            "are others times a factor": int(self.copies.sum()),
        }
        return ", ".join(f"{count:,} {words}" for words, count in parts.items() if count)

    def facts(self) -> dict[str, str]:
        """Return a line for every tensor."""
        found = {}
        for i, name in enumerate(self.names):
            shape = " x ".join(map(str, self.shapes[i])) or "one number"
            where = ", written by forward" if self.outside[i] else ""
            growth = f", grows as T^{self.growth[i]:.2g}" if self.growth[i] else ""
            seen = "" if self.read[i] < 0 else f"; read next {self.read[i]:,}, ever {self.used[i]:,}"
            found[name] = (
                f"{shape} {self.dtypes[i]}, {self.numbers[i]:,} numbers, {self.bits[i]:,} bits{where}{growth}{seen}"
            )
        if len(self.droppable):
            shown = ", ".join(map(str, self.droppable[:_NAMED])) + (", .." if len(self.droppable) > _NAMED else "")
            found["can be dropped"] = f"{shown} of the flat state"
        return found

    def plot(self) -> chart.Chart:
        """Draw the numbers of every tensor, those that are ever read, and those that the next output reads."""
        from mnemoscope.report import Bars, Figure, Series
        from mnemoscope.report.vega import chart as drawn

        places = [float(i) for i in range(len(self.names))]
        rows = {"carried": self.numbers, "ever read": self.used, "read next": self.read}
        series = [Series(entry=name, x=places, y=np.maximum(row, 0).tolist()) for name, row in rows.items()]
        bars = Bars(groups=self.names, series=series, x_title="tensor", y_title="real numbers")
        return drawn(Figure(title="What is carried, and what of it is read", drawing=bars))


_COST = Cost(
    time={"T S": 2e-6, "T": 5e-3, "S^2": 2e-8},
    memory="T S",
    sizes={"T": lambda known: known["horizon"] or min(max(known["S"], _STEPS[0]), _STEPS[1])},
    # As many steps three times over, twice as many before them, and back.
    paced=lambda n, pace: n["T"] * (5 * pace.step(n["trajectories"]) + pace.pull(n["trajectories"])) + 0.02,
)


@measure("state-inventory", kinds=("recurrent", "sequence"), quick={}, cost=_COST, any_module=True)
def state_inventory(
    network: nn.Module | Dynamics, *, horizon: int | None = None, trajectories: int = 16, seed: int = 0
) -> StateInventory:
    r"""List what a network carries from step to step, and what of it is ever read.

    .. math::
        j \text{ is read next} \iff \frac{\partial y_{t+1}}{\partial h_{t,j}} \ne 0, \qquad
        j \text{ is ever read} \iff \frac{\partial y_{t+k}}{\partial h_{t,j}} \ne 0 \text{ for some } k

    at states that occur, along driven trajectories; derivatives are exactly zero where nothing depends on a number.
    Tensors of the state are those that the network returns; buffers and attributes that its forward writes, and that
    two calls on different inputs leave different, are listed beside them.

    Parameters
    ----------
    network
        A network, or any module: one that `mnemoscope.adapt` refuses because it keeps something between calls is
        searched for that.
    horizon
        Steps within which a number must be read; None: as many as the state has numbers, from 16 to 128.
    trajectories
        Independent trajectories under standard normal inputs.
    seed
        Of the inputs.

    Returns
    -------
    StateInventory

    Examples
    --------
    >>> import mnemoscope as ms
    >>> print(ms.measures.state_inventory(ms.nn.LSTM(1, 64)))
    state = 2 x 64 real numbers (4,096 bits), of which 128 are ever read, 128 by the next output
    """
    runs = positive_int("trajectories", trajectories)
    original: Any = network.original if isinstance(network, Dynamics) else network
    adapted, refusal = _adapted(original)
    own = isinstance(getattr(adapted, "module", adapted), Network)  # which keep nothing but their state
    written = () if own else written_by_forward(adapted)
    if refusal is not None and not written:
        raise refusal
    if not isinstance(adapted, Recurrent):
        unread = getattr(adapted, "unread", "")
        return _result([], written, None, unread=unread, grown=grown_states(adapted) if unread else ())
    subject: Any = network if isinstance(network, Dynamics) else adapted
    size = 0 if adapted.grows else Dynamics.of(subject, _WHAT, differentiable=False).size
    steps = int(np.clip(size, *_STEPS)) if horizon is None else positive_int("horizon", horizon)
    if adapted.grows:
        subject = copy.deepcopy(adapted)
        subject.capacity = adapted.capacity or 3 * steps
    dynamics = Dynamics.of(subject, _WHAT, differentiable=False)
    with few_threads(dynamics.size):
        found = _looked_at(dynamics, steps, runs, torch.Generator().manual_seed(seed))
    return _result(_carried(adapted, dynamics), written, found, room=adapted.grows)


def _adapted(module: Any) -> tuple[Any, UserError | None]:
    """Return a module as a network; itself, with the reason, where it cannot be read as one."""
    if isinstance(module, Network):
        return module, None
    from mnemoscope.nn.adapt import adapt

    try:
        return adapt(module), None
    except UserError as error:
        return module, error


@dataclass(frozen=True)
class _Looked:
    """Which numbers of the flat state are read next, ever read, never change, or are copies."""

    read: Bool[Tensor, " size"]
    used: Bool[Tensor, " size"]
    still: Bool[Tensor, " size"]
    copies: Bool[Tensor, " size"]


def _looked_at(dynamics: Dynamics, steps: int, runs: int, generator: torch.Generator) -> _Looked:
    path = drive(dynamics, steps=steps, trajectories=runs, scale=1.0, washout=steps, generator=generator)
    flat = torch.stack([dynamics.flatten(each) for each in path.states]).flatten(0, 1)
    still, copies = idle_numbers(flat)

    def differentiate() -> tuple[Tensor, Tensor]:
        start = dynamics.flatten(path.states[0]).detach().requires_grad_()
        state, parts = dynamics.unflatten(start, path.states[0]), []
        with torch.enable_grad():
            for x in path.inputs:
                y, state = dynamics.step(x, state)
                parts.append((y * torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y)).sum())
            return tuple(  # type: ignore[return-value]
                torch.autograd.grad(total, start, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
                if total.requires_grad
                else torch.zeros_like(start)
                for total in (parts[0], torch.stack(parts).sum())
            )

    following, ever = ((each != 0).any(0) for each in dynamics.guarded(differentiate))
    return _Looked(following, ever | following, still, copies)


def idle_numbers(active: Float[Tensor, "time size"]) -> tuple[Bool[Tensor, " size"], Bool[Tensor, " size"]]:
    """Return which numbers of a state never change, and which are an earlier one times a factor.

    Of more than 2,048 numbers no copies are looked for.
    """
    moves = active.std(0) > 1e-6 * active.square().mean(0).sqrt()
    if active.shape[1] > _COMPARED:
        return ~moves, torch.zeros_like(moves)
    centred = active - active.mean(0)
    unit = torch.where(moves, centred / torch.where(moves, centred.norm(dim=0), 1.0), 0.0)
    alike = (unit.mT @ unit).abs().triu(1) > 1 - 1e-9
    return ~moves, alike.any(0)


class _Leaf:
    """A tensor of a state: its name, shape per example, type, and growth from a shorter to a longer sequence."""

    def __init__(
        self, name: str, tensor: Tensor, axis: int, dtype: torch.dtype, lengths: tuple[Tensor, Tensor]
    ) -> None:
        self.name, self.dtype = name, str(dtype).removeprefix("torch.")
        self.shape = tuple(size for place, size in enumerate(tensor.shape) if place != axis)
        count = math.prod(self.shape)
        self.counts = dtype.is_floating_point or dtype.is_complex
        self.numbers = count * (1 + dtype.is_complex) if self.counts else 0
        self.bits = 8 * dtype.itemsize * count
        short, long = (each.numel() for each in lengths)
        self.growth = math.log2(long / short) if short and long else 0.0


def _carried(network: Recurrent, dynamics: Dynamics) -> list[_Leaf]:
    """Return the tensors of a state, in the types of the network itself, and how they grow from 8 steps to 16."""
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(()))
    factory: dict[str, Any] = {"device": like.device, "dtype": like.dtype}
    open_ended = network.grows and network.capacity is None
    with torch.no_grad():
        ends: list[State] = [_after(network, steps, factory) for steps in ((8, 16) if open_ended else (8, 8))]
        held = dynamics.network.init_state(1) if open_ended else ends[0]
    short, long = (tree_flatten_with_path(each)[0] for each in ends)
    names = _names([keystr(path) for path, _ in short], network.batch_axis)
    stored = [leaf for _, leaf in tree_flatten_with_path(held)[0]]
    axis = network.batch_axis
    parts = zip(names, short, long, stored, strict=True)
    return [_Leaf(name, whole, axis, one.dtype, (one, other)) for name, (_, one), (_, other), whole in parts]


def _after(network: Recurrent, steps: int, factory: dict[str, Any]) -> State:
    training, order = network.training, (1, steps) if network.batch_first else (steps, 1)
    try:
        return network.eval()(torch.zeros(*order, *network.input_shape, **factory))[1]
    finally:
        network.train(training)


def _names(paths: list[str], axis: int) -> list[str]:
    """Return the names of a state's tensors: h, h and c as torch has them; else fields or keys, after the layer."""
    if paths == [""]:
        return ["h"]
    if axis == 1 and paths == ["[0]", "[1]"]:
        return ["h", "c"]
    places = [re.fullmatch(r"\[(\d+)\](.*)", path) for path in paths]
    several = len({place[1] for place in places if place}) > 1
    found = []
    for path, place in zip(paths, places, strict=True):
        layer = f"layer {int(place[1]) + 1} " if place and several else ""
        name = re.sub(r"\['(.*?)'\]", r".\1", place[2] if place else path).lstrip(".")
        found.append(f"{layer}{name or 'state'}")
    return found


def _result(
    leaves: list[_Leaf],
    written: tuple[Written, ...],
    looked: _Looked | None,
    *,
    room: bool = False,
    unread: str = "",
    grown: tuple[Written, ...] = (),
) -> StateInventory:
    """Put everything together; of a memory with room to grow nothing is called droppable: it is not full yet."""
    counted, beside = [leaf.numbers for leaf in leaves], (*grown, *written)
    rows: dict[str, list[int]] = {name: [] for name in ("read", "used", "still", "copies")}
    for name, row in rows.items():
        parts = () if looked is None else torch.split(getattr(looked, name), counted)
        row += [int(part.sum()) if leaf.counts else -1 for leaf, part in zip(leaves, parts, strict=True)]
        row += [0 if name in ("still", "copies") else -1 if each.read is None else each.read for each in beside]
    outer = [_Leaf(each.name, each.before, each.axis, each.before.dtype, (each.before, each.after)) for each in beside]
    whole = [*leaves, *outer]
    drop = torch.zeros(0) if looked is None or room else ~looked.used | looked.still | looked.copies
    return StateInventory(
        status="estimate",
        digits=None,
        assumptions=(
            "what is read is found along trajectories under standard normal inputs",
            *(("its memory has room for more than it holds",) if room else ()),
            *(("what forward writes is found by calling it twice",) if written else ()),
        ),
        cost=str(_COST),
        names=tuple(leaf.name for leaf in whole),
        shapes=tuple(leaf.shape for leaf in whole),
        dtypes=tuple(leaf.dtype for leaf in whole),
        numbers=np.array([leaf.numbers for leaf in whole], dtype=int),
        bits=np.array([leaf.bits for leaf in whole], dtype=int),
        growth=np.array([leaf.growth for leaf in whole], dtype=float),
        outside=np.array([False] * (len(leaves) + len(grown)) + [True] * len(written), dtype=bool),
        **{name: np.array(row, dtype=int) for name, row in rows.items()},
        droppable=drop.nonzero().flatten().cpu().numpy(),
        unread=unread,
    )
