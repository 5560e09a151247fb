"""The settings of a training, checked once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from mnemoscope.core.devices import check_device, chosen_device
from mnemoscope.core.errors import UserError, choice, expected, positive_int, unknown
from mnemoscope.core.seeds import check_seed
from mnemoscope.training.optimisers import OPTIMISERS, Clipping, Optimiser
from mnemoscope.training.schedule import COSINE, Plateau, plateau

__all__ = ["DATA", "PRECISIONS", "Options"]

DATA = ("fresh", "fixed", "stream")
PRECISIONS = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
"""Type of the parameters; with bfloat16 they stay in float32 and the network runs under autocast."""

_LOGS, _OFTEN = 50, 100


@dataclass(frozen=True)
class Options:
    """The settings of a training.

    Attributes
    ----------
    iterations
        Steps of the optimiser, at most.
    batch_size
        Sequences per step.
    lr, lr_orthogonal, lr_state_space
        Learning rates; that of orthogonal maps is a tenth by default, that of state-space matrices the same.
    optimizer
        ``"rmsprop"`` (with `alpha`, `eps`, `momentum`), ``"adam"`` (with `betas`, `eps`) or ``"adamw"`` (the same, with
        `weight_decay`, which the matrices of state-space networks are spared).
    seed
        Draws the batches, the validation and test sets, the readout, and what the network draws in training.
    penalty
        What the penalty of the network is multiplied by before it is added to the loss.
    clip_norm, clip_value, clip_largest
        Clipping: of the norm, of every entry, of the largest entry of each recurrent matrix (it is scaled).
    weight_decay
        Decoupled decay of AdamW: at each step parameters lose their rate times this of themselves.
    schedule
        ``"ziv"``, ``"halve"``, a `Plateau` or a table of its settings; or ``"cosine"``: rates fall to zero at the last
        iteration as half a period of a cosine.
    warmup
        Share of the iterations in which rates rise from zero in a line.
    patience
        Stop after so many validations without a lower loss.
    target
        Stop when the score on validation reaches this, with the weights of that moment.
    data
        ``"fresh"`` batches, the ``"fixed"`` sets of the task or a ``"stream"`` of text with the state carried over; by
        default what the task has.
    validate_every
        Steps between two validations; 0 never. By default an epoch of fixed data, a pass of a stream; of fresh data 100
        where there is a target, 1000 where something else follows from validation, else never.
    validation_size, test_size
        Sequences of the validation and test sets of fresh data.
    truncate
        Steps of a window of a stream, through which gradients go back; by default the task's length.
    log_every
        Steps between two lines of the metrics.
    checkpoint_every, checkpoint_seconds
        Steps and seconds between two checkpoints, whichever comes first.
    checkpoints
        How many of the newest are kept, beside the best and the first: by default 2, and as many as before in a run
        that goes on. ``mnemoscope measure drift`` reads them all.
    device, precision
        Where and with what numbers: ``"float32"``, ``"float64"``, ``"bfloat16"`` (autocast); by default the network's.
    """

    iterations: int
    batch_size: int = 128
    lr: float | None = None
    lr_orthogonal: float | None = None
    lr_state_space: float | None = None
    optimizer: str = "rmsprop"
    seed: int = 0
    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    penalty: float = 1.0
    clip_norm: float | None = None
    clip_value: float | None = None
    clip_largest: float | None = None
    schedule: Plateau | str | dict[str, Any] | None = None
    patience: int | None = None
    target: float | None = None
    data: str | None = None
    validate_every: int | None = None
    validation_size: int = 1000
    test_size: int = 1000
    truncate: int | None = None
    log_every: int | None = None
    checkpoint_every: int | None = None
    checkpoint_seconds: float = 60.0
    checkpoints: int | None = None
    device: str | None = None
    precision: str | None = None
    weight_decay: float = 0.0
    warmup: float = 0.0

    def __post_init__(self) -> None:
        """Check every setting, and put in the values of those that depend on others."""
        check_seed(self.seed)
        self._set("lr", 1e-3 if self.lr is None else self.lr)
        self._check_wholes()
        self._check_reals()
        self._check_names()
        if self.schedule != COSINE or self.patience is not None:
            self._set("schedule", plateau(self.schedule, self.patience))
        if self.validate_every == 0 and (self.plateau is not None or self.target is not None):
            raise UserError("validate_every must be above 0 where a schedule, patience or target looks at it, got 0")
        often = max(1, min(_OFTEN, self.iterations // _LOGS))
        self._set("log_every", often if self.log_every is None else positive_int("log_every", self.log_every))
        self._set("device", chosen_device() if self.device is None else check_device(self.device))

    def _check_wholes(self) -> None:
        for name in ("iterations", "batch_size", "validation_size", "test_size"):
            self._set(name, positive_int(name, getattr(self, name)))
        for name in ("checkpoint_every", "checkpoints", "truncate", "validate_every"):
            value = getattr(self, name)
            if value is not None and not (name == "validate_every" and value == 0):
                positive_int(name, value)

    def _check_reals(self) -> None:
        for name in ("lr", "lr_orthogonal", "lr_state_space", "penalty", "momentum", "weight_decay"):
            _check_number(name, getattr(self, name), lambda value: value >= 0, "a finite number that is not negative")
        for name in ("eps", "clip_norm", "clip_value", "clip_largest", "checkpoint_seconds"):
            _check_number(name, getattr(self, name), lambda value: value > 0, "a number above zero")
        _check_number(
            "warmup", self.warmup, lambda value: 0 <= value < 1, "a share of the iterations, from 0 to below 1"
        )
        if self.weight_decay and self.optimizer != "adamw":
            raise UserError(
                f"weight_decay must be 0 unless optimizer is 'adamw', got {self.weight_decay} with {self.optimizer!r}"
            )
        _check_number("target", self.target, lambda value: value <= 1, "a score of at most 1")
        self._check_averages()

    def _check_names(self) -> None:
        choice("optimizer", self.optimizer, OPTIMISERS)
        if self.data is not None:
            choice("data", self.data, DATA)
        if self.precision is not None:
            choice("precision", self.precision, PRECISIONS)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all settings."""
        return [field.name for field in dataclasses.fields(cls)]

    @classmethod
    def make(cls, settings: dict[str, Any]) -> Options:
        """Build it from settings by name; one that does not exist is refused with the nearest that does."""
        for name in settings:
            if name not in cls.names():
                raise unknown(f"training has no setting {name!r}", name, cls.names())
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return what decides the numbers, ready for JSON: not how often is written, nor where it is computed."""
        left_out = ["checkpoint_every", "checkpoint_seconds", "checkpoints", "device", "patience"]
        # Of later date: where they are not used, runs keep the names that they had.
        left_out += [name for name in ("lr_state_space", "weight_decay", "warmup") if not getattr(self, name)]
        found = {name: getattr(self, name) for name in self.names() if name not in left_out}
        found["betas"] = list(self.betas)
        found["schedule"] = self.schedule if self.plateau is None else dataclasses.asdict(self.plateau)
        return found

    @property
    def plateau(self) -> Plateau | None:
        """The schedule that follows validation, where there is one."""
        return self.schedule if isinstance(self.schedule, Plateau) else None

    def rate_factor(self, step: int) -> float:
        """Return what rates are multiplied by at a step, counted from 0, whatever validation says."""
        rising = self.warmup * self.iterations
        if step < rising:
            return (step + 1) / (rising + 1)
        if self.schedule != COSINE:
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * (step - rising) / (self.iterations - rising)))

    @property
    def clipping(self) -> Clipping | None:
        """What is done to gradients; None for nothing."""
        made = Clipping(self.clip_norm, self.clip_value, self.clip_largest)
        return None if made == Clipping() else made

    def optimiser(self, parameters: list[torch.Tensor], rates: list[Any], decays: list[bool]) -> Optimiser:
        """Return the optimiser of some parameters; `decays`: which of them weight decay applies to."""
        own: dict[str, Any] = {"alpha": self.alpha, "eps": self.eps, "momentum": self.momentum}
        if self.optimizer != "rmsprop":
            own = {"betas": self.betas, "eps": self.eps}
        if self.optimizer == "adamw":
            own |= {"weight_decay": self.weight_decay, "decays": decays}
        return OPTIMISERS[self.optimizer](parameters, rates, **own)

    def _check_averages(self) -> None:
        betas = self.betas
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise expected("betas", "two numbers from 0 to below 1", betas)
        for name, value in (("alpha", self.alpha), ("betas", betas[0]), ("betas", betas[1])):
            _check_number(name, value, lambda number: 0 <= number < 1, "a number from 0 to below 1")
        self._set("betas", (float(betas[0]), float(betas[1])))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _check_number(name: str, value: Any, good: Callable[[float], bool], what: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not good(value):
        raise expected(name, what, value)
