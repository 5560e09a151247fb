"""A recurrent network as a dynamical system: a copy in float64, its step on flat states, and its Jacobians."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map

from mnemoscope.core import memory
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State

__all__ = ["ROOM", "Dynamics"]

T = TypeVar("T")

Step = Callable[[Tensor, State], tuple[Tensor, State]]

_SIZES = (-3, 2)
"""Powers of ten between which the inputs of probes have their sizes."""

_PROBE_STEPS = 8

ROOM = 400
"""Steps for which a memory that grows has room, where its network names no capacity and a measure needs no more."""

_ROWS = 2**22
"""Numbers of the cotangents that are pulled back in one call."""


@dataclass(frozen=True)
class Jacobians:
    """Derivatives of one step, for a batch of states and inputs.

    Attributes
    ----------
    state
        d h' / d h.
    input
        d h' / d x.
    """

    state: Float[Tensor, "batch size size"]
    input: Float[Tensor, "batch size input"]


@dataclass(frozen=True)
class Dynamics:
    """A network prepared for measures. Every measure of a network takes one in place of the network.

    It is made once (`Dynamics.of`) and handed to as many measures as there are: the copy in float64, the maps of the
    weights, the checks, and whether the network is linear are not computed again for each.

    Where a state holds integers (lengths, counters), which no flat vector holds, they are taken from the state `like`.

    Attributes
    ----------
    network
        The copy: in float64, in eval mode, without gradients of its parameters.
    original
        The network as it was given.
    step
        The copy's step, with every map of its weights computed once; inputs are flat.
    what
        The measure that uses it, as errors name it.
    inputs
        Sequences that drive it, (time, batch, input); None: measures draw them.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> prepared = ms.measures.Dynamics.of(ms.nn.LSTM(3, 16))
    >>> prepared.size
    32
    >>> len(ms.measures.lyapunov_exponents(prepared, horizon=20, transient=0, trajectories=1).exponents)
    32
    """

    network: Recurrent
    original: nn.Module
    step: Step
    what: str = "a measure"
    inputs: Float[Tensor, "time batch input"] | None = field(default=None, repr=False, compare=False)
    known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What has been found out so far, shared by all measures that this is handed to."""

    @classmethod
    def of(
        cls,
        network: nn.Module | Dynamics,
        what: str = "a measure",
        *,
        device: str | None = None,
        differentiable: bool = True,
        inputs: Any = None,
    ) -> Dynamics:
        """Prepare a network, or take one that is prepared.

        Parameters
        ----------
        network
            A network of kind ``"recurrent"``, or any module that `mnemoscope.adapt` understands; it is left as it is.
        what
            The measure, as errors name it: ``"network_fisher_memory"``.
        device
            Where to compute; None: where the network is.
        differentiable
            Whether a step that autograd cannot differentiate is refused.
        inputs
            Sequences of one's own that drive it in place of drawn ones, (time, batch, input).
        """
        if isinstance(network, Dynamics):
            found = replace(network, what=what) if device is None else cls.of(network.original, what, device=device)
        else:
            twin = prepare(network, what=what, device=device)
            found = cls(twin, network, _flat_step(twin), what)
        if inputs is not None:
            from mnemoscope.measures.inputs import given_sequences

            found = replace(found, inputs=given_sequences(inputs, found.input_size))
        if differentiable and "differentiable" not in found.known:
            found.require_differentiable()
            found.known["differentiable"] = True
        return found

    @property
    def input_size(self) -> int:
        """Numbers per step of the input."""
        return self.network.input_size

    @cached_property
    def size(self) -> int:
        """Real numbers in a state."""
        return self.flatten(self.start(1)).shape[1]

    @cached_property
    def factory(self) -> dict[str, Any]:
        """Device and type of the network."""
        like = self.flatten(self.network.init_state(1))
        return {"device": like.device, "dtype": like.dtype}

    def with_room(self, steps: int) -> Dynamics:
        """Return them with room for so many steps, where a memory grows whose network names no capacity."""
        if not self.network.grows or (self.network.capacity or 0) >= steps:
            return self
        if getattr(self.original, "capacity", None) is not None:
            return self
        twin = copy.deepcopy(self.network)
        twin.capacity = steps
        return replace(self, network=twin, step=_flat_step(twin), known={})

    def start(self, batch: int) -> State:
        """Return the state before the first input."""
        return self.network.init_state(batch)

    def flatten(self, state: State) -> Float[Tensor, "batch size"]:
        """Return a state as one real vector per example."""
        return self.network.flatten_state(state)

    def unflatten(self, flat: Float[Tensor, "batch size"], like: State) -> State:
        """Return flat vectors as a state, its integers those of `like`."""
        return self.network.unflatten_state(flat, like)

    def join(self, states: list[State]) -> State:
        """Return several states as one with a longer batch."""
        return tree_map(lambda *leaves: torch.cat(leaves, dim=self.network.batch_axis), *states)

    @cached_property
    def read(self) -> Int[Tensor, " units"]:
        """Places in the flat state of the numbers that `readout_state` keeps; all of them for most networks."""
        like = self.start(1)
        size = self.flatten(like).shape[1]
        places = torch.arange(size, **self.factory).unsqueeze(0)
        return self.flatten(self.network.readout_state(self.unflatten(places, like))).squeeze(0).long()

    def readout(self) -> Float[Tensor, "units size"]:
        """Return the matrix that picks `readout_state` from the flat state; the identity for most networks."""
        size, units = self.size, len(self.read)
        needed = 16 * units * size
        memory.require(f"{self.what} of a state of {size:,} numbers", needed, "a smaller network would fit")
        rows = torch.zeros(units, size, **self.factory)
        rows[torch.arange(units), self.read] = 1
        return rows

    # Going forward ----------------------------------------------------------------------------------

    def advance(
        self, x: Float[Tensor, "batch input"], flat: Float[Tensor, "batch size"], like: State | None = None
    ) -> Float[Tensor, "batch size"]:
        """Return the flat state after one input."""
        like = self.start(flat.shape[0]) if like is None else like
        return self.flatten(self.step(x, self.unflatten(flat, like))[1])

    @torch.no_grad()
    def drive(self, inputs: Float[Tensor, "time batch input"], state: State) -> list[State]:
        """Return the states before the first input, and after each."""
        states = [state]
        for x in inputs:
            states.append(self.guarded(partial(self.step, x, states[-1]))[1])
        ends = torch.stack([self.flatten(each).isfinite().all() for each in states])
        if not bool(ends.all()):
            step = int((~ends).nonzero()[0])
            became = "become NaN" if bool(self.flatten(states[step]).isnan().any()) else "overflow"
            norm = float(self.flatten(states[max(step - 1, 0)]).norm(dim=1).max())
            raise UserError(
                f"{self.what} needs states that stay finite, and this network's {became} after {step} steps, from a "
                f"norm of {norm:.3g} the step before; take a shorter horizon, a shorter washout or smaller inputs"
            )
        return states

    def probe_states(self, batch: int, generator: torch.Generator) -> State:
        """Return states that occur, as the network itself says: most are driven there by inputs from N(0, 1)."""
        return self.guarded(partial(self.network.probe_states, batch, generator))

    @torch.no_grad()
    def probes(self, batch: int, generator: torch.Generator) -> tuple[Float[Tensor, "batch input"], State]:
        """Return inputs of sizes from 0.001 to 100 and states that a few such inputs lead to, which may overflow.

        States are never made by adding noise to every number: no counter, memory or simplex survives that.
        """
        sizes = torch.logspace(*_SIZES, batch, dtype=torch.float64).unsqueeze(1)

        def draw() -> Tensor:
            drawn = torch.randn(batch, self.input_size, generator=generator, dtype=torch.float64)
            return (sizes * drawn).to(**self.factory)

        state = self.start(batch)
        for _ in range(_PROBE_STEPS):
            state = self.guarded(partial(self.step, draw(), state))[1]
        return draw(), state

    # Going back -------------------------------------------------------------------------------------

    def jacobians(self, inputs: Float[Tensor, "batch input"], state: State) -> Jacobians:
        """Return the derivatives of one step for a whole batch of states: S pullbacks, mapped, of one call.

        A step that torch.func cannot map (an autograd function without rules for it) is repeated for every row.
        """
        flat = self.flatten(state)
        batch, size = flat.shape
        rows = torch.eye(size, **self.factory)[:, None].expand(size, batch, size)
        at_once = max(1, _ROWS // max(1, batch * size))

        def mapped() -> tuple[Tensor, Tensor]:
            pull: Any = torch.func.vjp(lambda h, x: self.advance(x, h, state), flat, inputs)[1]
            found: tuple[Tensor, Tensor] = torch.func.vmap(pull, chunk_size=at_once)(rows)
            return found

        def repeated() -> tuple[Tensor, Tensor]:
            parts = [self.pull_block(inputs, state, part) for part in torch.split(rows, at_once)]
            by_state, by_input = (torch.cat(each) for each in zip(*parts, strict=True))
            return by_state, by_input

        if self.known.get("mapped", True):
            try:
                by_state, by_input = self.guarded(mapped)
                return Jacobians(by_state.transpose(0, 1), by_input.transpose(0, 1))
            except UserError:
                if not self.can(repeated):
                    raise
                self.known["mapped"] = False
        by_state, by_input = self.guarded(repeated)
        return Jacobians(by_state.transpose(0, 1), by_input.transpose(0, 1))

    def pull_block(
        self, inputs: Float[Tensor, "batch input"], state: State, block: Float[Tensor, "block batch size"]
    ) -> tuple[Tensor, Tensor]:
        """Pull a block of cotangents back by plain autograd, with a copy of the states for each."""
        count = len(block)
        found = self.pull_back(inputs.repeat(count, 1), self.join([state] * count), block.flatten(0, 1))
        by_state, by_input = (each.reshape(*block.shape[:2], -1) for each in found)
        return by_state, by_input

    @staticmethod
    def can(compute: Callable[[], Any]) -> bool:
        """Whether something can be computed of a step that somebody else wrote."""
        try:
            compute()
        except (RuntimeError, TypeError, NotImplementedError, UserError):
            return False
        return True

    def pull_back(
        self,
        inputs: Float[Tensor, "batch input"],
        state: State,
        after: Float[Tensor, "batch size"],
        output: Float[Tensor, "batch output"] | None = None,
        made: Sequence[Tensor] = (),
    ) -> tuple[Tensor, ...]:
        """Return the gradient at state and input of one step, from those at the state after it and at its output.

        Behind them those at what the step has made on its way, where it adds that to the list `made`.
        """

        def differentiate() -> tuple[Tensor, ...]:
            h, x = self.flatten(state).detach().requires_grad_(), inputs.detach().requires_grad_()
            with torch.enable_grad():
                y, new = self.step(x, self.unflatten(h, state))
                ends = [(self.flatten(new), after)] + ([] if output is None else [(y, output.reshape(y.shape))])
                # What depends on neither has no gradient to give, and autograd refuses to be asked for it.
                seen = [(value, cotangent) for value, cotangent in ends if value.requires_grad]
                values, cotangents = zip(*seen, strict=True)
                return torch.autograd.grad(values, (h, x, *made), cotangents, materialize_grads=True)

        return self.guarded(differentiate)

    # What can go wrong ------------------------------------------------------------------------------

    def guarded(self, compute: Callable[[], T]) -> T:
        """Compute, and say in one line what went wrong inside a step that torch cannot run or differentiate."""
        try:
            return compute()
        except UserError:
            raise
        except (RuntimeError, TypeError, NotImplementedError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            name = type(getattr(self.network, "module", self.network)).__name__
            raise UserError(
                f"{self.what} needs a step that torch.func can differentiate, got {name}: {reason}"
            ) from error

    def require_differentiable(self) -> None:
        """Raise unless autograd sees that the next state depends on the one before it, as its values do.

        Asked at states that occur, or at the start where these overflow. A derivative that is NaN is no derivative.
        """
        generator = torch.Generator().manual_seed(0)
        like = self.probe_states(8, generator)
        if not bool(self.flatten(like).isfinite().all()):
            like = self.start(8)
        flat = self.flatten(like)
        x = torch.randn(8, self.input_size, generator=generator, dtype=torch.float64).to(flat)
        leaf = flat.detach().clone().requires_grad_()
        after = self.guarded(lambda: self.advance(x, leaf, like))
        found = torch.autograd.grad(after.sum(), leaf, allow_unused=True)[0] if after.requires_grad else None
        if found is not None and not bool(found.isfinite().all()):
            raise UserError(
                f"{self.what} needs derivatives, and those of this network's step are NaN or infinite at states that "
                "it visits (a root or a quotient at zero?)"
            )
        if found is not None and bool((found != 0).any()):
            return
        with torch.no_grad():
            # The same inputs at the state of another example: a value that changes with the state has a derivative.
            other = self.advance(x, flat.roll(1, 0), like)
        if bool((other != after).any()):
            raise UserError(
                f"{self.what} needs a differentiable step, and this one is not: the state depends on the state before "
                "it, but autograd finds no derivative (is something detached, rounded or made of integers?)"
            )


def prepare(network: nn.Module | Dynamics, *, what: str, device: str | None = None) -> Recurrent:
    """Return a copy of a recurrent network to measure: in float64, in eval mode, without gradients of its parameters.

    `what` is the measure, as errors name it. Of a network that is prepared its copy is taken.
    """
    if isinstance(network, Dynamics):
        return network.network
    if not isinstance(network, nn.Module):
        raise expected("network", "a torch.nn.Module", Description(f"a {type(network).__name__}"))
    _check_finite(network)
    adapted: nn.Module = network
    if not isinstance(network, Recurrent):
        from mnemoscope.nn.adapt import adapt  # only strangers need it

        adapted = adapt(network)
    kind = getattr(adapted, "kind", None)
    if not isinstance(adapted, Recurrent):
        raise UserError(f"{what} needs a network of kind 'recurrent', got {type(network).__name__} of kind {kind!r}")
    adapted.require_causal(what)
    twin = copy.deepcopy(adapted).eval().requires_grad_(False)
    if twin.grows and twin.capacity is None:
        twin.capacity = ROOM
    single = copy.deepcopy(twin) if hasattr(twin, "module") else None
    apply: Any = twin._apply  # Module.double leaves complex parameters in single precision
    apply(in_double_precision)
    double_attributes(twin)
    if single is not None and not _runs(twin):  # a stranger's code may cast to its own precision
        twin = single
    return twin if device is None else twin.to(device)


@torch.no_grad()
def _runs(network: Recurrent) -> bool:
    """Whether a stranger's network makes a step in the precision that it was taken to."""
    state = network.init_state(2)
    x = network.flatten_state(state).new_zeros(2, *network.input_shape)
    try:
        network.step(x, state)
    except Exception:  # its forward may raise anything
        return False
    return True


def double_attributes(twin: nn.Module) -> None:
    """Take tensors that are plain attributes of a stranger's modules to double precision as well, in a copy."""
    for part in twin.modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor):
                vars(part)[name] = in_double_precision(value)


def in_double_precision(tensor: Tensor) -> Tensor:
    """Return a parameter or buffer in double precision, complex or real; integers stay."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _check_finite(network: nn.Module) -> None:
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if not is_lazy(tensor) and not bool(tensor.isfinite().all()):
            raise expected(f"every weight of {type(network).__name__}", "finite", Description(f"NaN or inf in {name}"))


def _flat_step(network: Recurrent) -> Step:
    """Return the step of a network as a function of flat inputs, with every map of its weights computed once."""
    step, shape = network.stepper(), network.input_shape
    if len(shape) == 1:
        return step
    return lambda x, state: step(x.reshape(-1, *shape), state)


_SMALL = 512
"""State size up to which threads wait for each other longer than they work: on a busy machine ten times as long."""


@contextmanager
def few_threads(size: int) -> Iterator[None]:
    """Run what is within on one thread, of torch and of NumPy, when states have at most 512 numbers."""
    if size > _SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
