"""Settings of proximal policy optimisation, checked once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.tasks.control import Environment

__all__ = ["DEFAULTS", "PPO"]

DEFAULTS: dict[str, Any] = {
    "batch_size": 256,
    "lr": 1e-3,
    "optimizer": "adam",
    "clip_norm": 0.5,
    "validation_size": 128,
    "test_size": 128,
}
"""Settings of training that have other values here than where sequences are learned; sizes count steps and episodes."""


@dataclass(frozen=True)
class PPO:
    """What proximal policy optimisation is told besides the settings of every training.

    Attributes
    ----------
    worlds
        Copies of the environment that are played in step.
    frames
        Steps of each copy between two updates; None: as the environment says, 128 as a rule.
    epochs
        Passes over what was played in an update.
    recurrence
        Steps through which gradients go back, a divisor of `frames`; None: all of them.
    burn_in
        Steps before these that are run again without gradient, so that the state is that of the present weights.
    discount
        gamma, what a reward a step later is worth.
    trace
        lambda of the advantage: 0 trusts the value of the next step, 1 the rewards alone.
    clip
        By how much the probability of an action may change, as a ratio, before an update ignores it.
    entropy, value
        Weights of the entropy bonus and of the value's error in the loss.
    """

    worlds: int = 16
    frames: int | None = None
    epochs: int = 4
    recurrence: int | None = None
    burn_in: int = 0
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("worlds", "epochs"):
            positive_int(name, getattr(self, name))
        for name in ("frames", "recurrence"):
            if getattr(self, name) is not None:
                positive_int(name, getattr(self, name))
        if isinstance(self.burn_in, bool) or not isinstance(self.burn_in, int) or self.burn_in < 0:
            raise expected("burn_in", "a whole number that is not negative", self.burn_in)
        for name, largest in (
            ("discount", 1.0),
            ("trace", 1.0),
            ("clip", math.inf),
            ("entropy", math.inf),
            ("value", math.inf),
        ):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= largest:
                end = "" if math.isinf(largest) else f" to {largest:g}"
                raise expected(name, f"a number from 0{end or ' on'}", number)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all settings."""
        return list(cls.__dataclass_fields__)

    def within(self, environment: Environment) -> PPO:
        """Return the settings with frames and recurrence as an environment decides them."""
        frames = environment.frames if self.frames is None else self.frames
        recurrence = frames if self.recurrence is None else self.recurrence
        if frames % recurrence:
            raise expected("recurrence", f"a divisor of frames = {frames}", recurrence)
        if self.burn_in > frames:
            raise UserError(f"burn_in must be at most frames = {frames}, got {self.burn_in}")
        return PPO(**{**asdict(self), "frames": frames, "recurrence": recurrence})

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)
