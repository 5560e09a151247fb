"""What needs a causal network says so, and why another one will not do."""

from __future__ import annotations

from mnemoscope.core.errors import UserError

__all__ = ["Causal"]


class Causal:
    """A network that knows whether it is causal.

    Attributes
    ----------
    causal
        Whether the output at a step depends on nothing that comes later.
    future
        Why it is not causal, in words.
    """

    causal: bool = True
    future: str = "it reads the future"

    def require_causal(self, what: str) -> None:
        """Raise the reason why `what`, which needs a causal network, cannot use this one; else do nothing."""
        if not self.causal:
            raise UserError(f"{what} needs a causal network, and this one is not: {self.future}")
