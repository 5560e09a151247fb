"""relational-lstm: panels read one after the other by a recurrent network, answered at the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.registry import create, get, network
from mnemoscope.nn.relational import FEATURES, Relational, RelationalOptions

__all__ = ["RelationalLSTM", "build_core", "checked_core"]


@network(
    "relational-lstm",
    family="relational",
    equations=("h_t = LSTM(z_t, h_{t-1})", "y = C h_T + d"),
    state="0",
    references=("hochreiter1997", "kerg2022"),
    notes=("core= takes any recurrent network of the registry: core='lru', core='scornn'.",),
)
class RelationalLSTM(Relational):
    """A recurrent network over the panels, and a readout of its last output.

    Parameters
    ----------
    core
        Any recurrent network of the registry.
    hidden_size
        Its units.
    core_options
        Its further options.
    """

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        core: str = "lstm",
        hidden_size: int = 512,
        core_options: Mapping[str, Any] | None = None,
        **common: Unpack[RelationalOptions],
    ) -> None:
        self.core, self.hidden_size, self.core_options = checked_core(core, hidden_size, core_options)
        super().__init__(panels, answers, **common)

    def declare(self, layer: Layer) -> None:
        """Add the core and its readout."""
        super().declare(layer)
        core = build_core(self.core, FEATURES, self.hidden_size, self.core_options)
        self.submodule("sequence", core, full_name="sequence")
        self.submodule("readout", nn.Linear(core.output_size, self.answers), full_name="readout")

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the readout of the last output."""
        part: Any = self
        scores: Tensor = part.readout(part.sequence(z)[0][-1])
        return scores


def checked_core(core: Any, hidden_size: Any, options: Any) -> tuple[str, int, dict[str, Any] | None]:
    """Return the description of a core, or raise about what is none."""
    if not isinstance(core, str):
        raise expected("core", "the name of a recurrent network", core)
    kind = getattr(get(core), "kind", "")
    if kind != "recurrent":
        raise expected("core", "the name of a recurrent network", Description(f"{core!r}, which is {kind}"))
    if options is not None and not isinstance(options, Mapping):
        raise expected("core_options", "options by name", options)
    return core, positive_int("hidden_size", hidden_size), None if options is None else dict(options)


def build_core(core: str, inputs: int, hidden_size: int, options: Mapping[str, Any] | None) -> Any:
    """Return the recurrent network of a description."""
    return create(core, input_size=inputs, hidden_size=hidden_size, **(options or {}))
