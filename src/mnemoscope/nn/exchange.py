"""Exchange of layers with torch.nn.RNN, LSTM and GRU: as modules, and as state dicts."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.stack import Stack

__all__ = ["TorchLayer", "add_biases"]


class TorchLayer(Stack):
    """A layer that torch has as well: it can be made of torch's, and torch's of it.

    Attributes
    ----------
    torch_class
        torch's layer.
    """

    torch_class: ClassVar[type[nn.RNNBase]]

    @property
    def mode(self) -> str:
        """Name by which torch knows this kind of layer: ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"``, ``"GRU"``."""
        return self.torch_class.__name__

    def torch_options(self) -> dict[str, Any]:
        """Return the arguments of torch's layer; an error where there is none of this kind."""
        if len(self.input_shape) > 1:
            raise expected("input_size", "a number, as torch's layers have", self.input_shape)
        names = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
        return {name: getattr(self, name) for name in names}

    @torch.no_grad()
    def to_torch(self) -> nn.RNNBase:
        """Return torch's own layer with the same weights."""
        made: nn.RNNBase = self.torch_class(**self.torch_options(), **self._own_factory())
        for name, parameter in made.named_parameters():
            parameter.copy_(self._torch_weight(name))
        return made.train(self.training)

    def _torch_weight(self, name: str) -> Tensor:
        found: Tensor = getattr(self, name)
        return found

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> Self:
        """Return a layer with the weights of torch's own."""
        if not isinstance(module, cls.torch_class):
            raise expected("module", f"a torch.nn.{cls.torch_class.__name__}", Description(type(module).__name__))
        like = next(module.parameters())
        options = {name: getattr(module, name) for name in cls._read_from_torch(module)}
        layer = cls(**options, device=like.device, dtype=like.dtype, generator=torch.Generator())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that two biases are added
            layer.load_state_dict(module.state_dict())
        return layer.train(module.training)

    @classmethod
    def _read_from_torch(cls, module: nn.RNNBase) -> tuple[str, ...]:
        if module.proj_size and cls.torch_class is not nn.LSTM:
            raise UserError("only an LSTM has a projection")
        names = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
        return (*names, *(("nonlinearity",) if cls.torch_class is nn.RNN else ()))


def add_biases(layer: Stack, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Put the sum of torch's two biases in their place, in a state dict that is about to be loaded.

    A first-order network adds both to the same sum, so that one does for two. (In a GRU the sum would be another
    function: there both are kept.)
    """
    added = []
    for own in layer._layers:
        pair = [f"{prefix}{name}{own.suffix}" for name in ("bias_ih", "bias_hh")]
        if "bias" in own.names and all(key in state_dict for key in pair):
            state_dict[prefix + own.names["bias"]] = state_dict.pop(pair[0]) + state_dict.pop(pair[1])
            added.append(own.names["bias"])
    if added:
        warnings.warn(f"torch's two biases were added up to {', '.join(added)}", stacklevel=4)
