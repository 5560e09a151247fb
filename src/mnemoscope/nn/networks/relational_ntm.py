"""relational-ntm: panels read one after the other by a neural Turing machine, answered by its controller."""

from __future__ import annotations

from typing import Any, Unpack

from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.registry import create, network
from mnemoscope.nn.relational import FEATURES, Relational, RelationalOptions

__all__ = ["RelationalNTM"]


@network(
    "relational-ntm",
    family="relational",
    equations=("h_t, M_t = NTM(z_t, h_{t-1}, M_{t-1}), M_0 learned", "y = C h_T + d"),
    state="0",
    references=("graves2014", "kerg2022"),
)
class RelationalNTM(Relational):
    """A neural Turing machine over the panels, with a learned initial memory and a readout of its controller.

    The controller is an LSTM with two biases, as torch's; one read and one write head.

    Parameters
    ----------
    hidden_size
        Units of the controller.
    memory
        Slots and their width.
    """

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        hidden_size: int = 512,
        memory: tuple[int, int] = (10, 256),
        **common: Unpack[RelationalOptions],
    ) -> None:
        self.hidden_size = positive_int("hidden_size", hidden_size)
        if not isinstance(memory, tuple | list) or len(memory) != 2:
            raise expected("memory", "two positive integers, slots and their width", memory)
        self.memory = (positive_int("memory", memory[0]), positive_int("memory", memory[1]))
        super().__init__(panels, answers, **common)

    def declare(self, layer: Layer) -> None:
        """Add the machine, its second bias, its memory before the first panel, and the readout."""
        super().declare(layer)
        machine = create("ntm", input_size=FEATURES, hidden_size=self.hidden_size, memory=self.memory)
        self.submodule("machine", machine, full_name="machine")
        bound = self.hidden_size**-0.5
        self.parameter("bias_hh", 4 * self.hidden_size, init=uniform(bound), full_name="bias_hh")
        self.parameter("blank", *self.memory, init=uniform(self.memory[1] ** -0.5), role="initial", full_name="blank")
        self.submodule("readout", nn.Linear(self.hidden_size, self.answers), full_name="readout")

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the readout of the controller at the last panel."""
        part: Any = self
        # The machine has one bias: ours is added to it, so that both learn as those of torch's LSTM do.
        bias = {"bias_l0": part.machine.bias_l0 + part.bias_hh}
        outputs, _ = functional_call(part.machine, bias, (z, self._start(z)))
        scores: Tensor = part.readout(outputs[-1, :, : self.hidden_size])
        return scores

    def _start(self, z: Tensor) -> Any:
        """Return the machine's state before the first panel, with the learned memory."""
        part: Any = self
        state = part.machine.init_state(z.shape[1], device=z.device, dtype=z.dtype)
        blank = part.blank.to(z.dtype).expand(z.shape[1], -1, -1)
        return tuple(layer._replace(memory=blank) for layer in state)
