"""Meaning of a constructor's arguments: the words that authors use for sizes, and usual values of the others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

__all__ = ["DEFAULT_SIZES", "Sizes", "is_configuration", "meaning_of", "suggested", "usual_value"]

DEFAULT_SIZES = {"input_size": 1, "hidden_size": 64, "num_layers": 1}
"""The sizes of a network that is described without any."""

_BEFORE = ("", "n", "num", "nb", "d", "dim", "size")
_AFTER = ("size", "sizes", "sz", "dim", "dims", "d", "features", "channels", "width", "units", "nodes", "neurons")
_STEMS = {
    "input_size": "in inp input inputs x feature obs observation",
    "hidden_size": "hid hidden hiddens h rnn lstm gru recurrent reservoir res latent controller neuron",
    "output_size": "out output outputs y target class classes labels action actions",
}
"""Words that become an argument's name with one of `_BEFORE` or of `_AFTER`, such as n_inp or hidden_dim."""

_WHOLE = {
    "input_size": "d inputs features_in input_features",
    "hidden_size": "n units hidden nhidden num_units n_units hidden_units hidden_layer_size hidden_layer_sizes "
    "layer_sizes hidden_sizes hidden_dims rnn_hidden n_rec neurons n_neurons num_neurons state_size state_features "
    "cell_size",
    "output_size": "n_class num_labels outputs",
    "num_layers": "layers n_layer n_layers num_layers num_hidden_layers num_rnn_layers num_blocks n_blocks depth",
    "both": "d_model model_dim dmodel model_size dim dims width size embed_dim n_embd n_embed channels num_channels "
    "n_channels features num_features n_features hidden_channels feature_dim emb embed d_embed dimension "
    "embedding_dim embedding_size emb_dim emb_size embed_size",
}
"""Whole names."""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _names() -> dict[str, str]:
    """Return the meaning of every name; where two lists have it, the whole name decides."""
    found: dict[str, str] = {}
    for meaning, stems in _STEMS.items():
        for stem in stems.split():
            bare = [f"{before}{stem}" for before in _BEFORE if before or len(stem) > 2]
            found |= dict.fromkeys([*bare, *(f"{stem}{after}" for after in _AFTER)], meaning)
            found |= dict.fromkeys((f"{before}{stem}{after}" for before in _BEFORE for after in _AFTER), meaning)
    for meaning, names in _WHOLE.items():
        found |= dict.fromkeys(map(_plain, names.split()), meaning)
    return found


_MEANINGS = _names()

_HIDDEN = re.compile(r"hid(?:den)?s?(?:size|dim|units)?$|^neurons?(?:number|count)$")
"""Names that are said in many ways: rnn_hid, enc_hidden_dim, neuron_number."""

_INPUT = re.compile(r"_(?:in|inp|input)$", re.IGNORECASE)
"""Names that end so, such as vocab_in."""

_CONFIGURATIONS = ("config", "cfg", "conf", "args", "hparams", "params", "opt", "options", "hp", "configs", "settings")


def is_configuration(name: str) -> bool:
    """Whether an argument of this name collects others."""
    return name in _CONFIGURATIONS


def meaning_of(name: str) -> str | None:
    """Return the size that an argument of this name means: input, hidden, both of them, output, layers; or None.

    Examples
    --------
    >>> [meaning_of(name) for name in ("n_inp", "vocab_in", "nhid", "d_model", "n_layers", "expansion_factor")]
    ['input_size', 'input_size', 'hidden_size', 'both', 'num_layers', None]
    """
    last = name.rpartition(".")[2]
    plain = _plain(last)
    other = "hidden_size" if _HIDDEN.search(plain) else "input_size" if _INPUT.search(last) else None
    return _MEANINGS.get(plain) or other


@dataclass(frozen=True)
class Sizes:
    """Sizes of a network that is to be built.

    Attributes
    ----------
    given
        ``input_size``, ``hidden_size``, ``num_layers``.
    """

    given: Mapping[str, Any]

    def place(self, parameters: Sequence[inspect.Parameter], taken: Mapping[str, Any]) -> dict[str, str]:
        """Return which argument each size goes to, by meaning; where one size is both, hidden size goes there.

        Parameters
        ----------
        parameters
            Of the constructor.
        taken
            Arguments that have a value already.
        """
        found: dict[str, str] = {}
        usable = [p for p in parameters if not isinstance(p.default, bool | str)]
        # A required argument comes before an optional one of the same meaning.
        for p in sorted(usable, key=lambda p: (p.default is not p.empty, p.name in taken)):
            meaning = meaning_of(p.name)
            if meaning is not None:
                found.setdefault(meaning, p.name)
        if "hidden_size" not in found and "output_size" in found and "both" not in found:
            found["hidden_size"] = found.pop("output_size")  # in_features, out_features
        if "hidden_size" in found and "both" in found:
            # A width beside a hidden size is that of the input, where there is no other.
            both = found.pop("both")
            if "input_size" not in found and _needed(parameters, both):
                found["input_size"] = both
        if "both" in found and "input_size" in found:
            found["hidden_size"] = found.pop("both")
        return found

    def value(self, size: str, argument: str) -> Any:
        """Return the value of an argument that means a size; several where its name says so."""
        given = self.given["hidden_size" if size in ("both", "output_size") else size]
        several = size == "hidden_size" and re.search(r"(?:sizes|dims)$", argument)
        return [given] * int(self.given["num_layers"]) if several and isinstance(given, int) else given


def _needed(parameters: Sequence[inspect.Parameter], name: str) -> bool:
    """Whether an argument has no default."""
    return any(p.name == name and p.default is p.empty for p in parameters)


def usual_value(name: str, sizes: Sizes, beside: Sequence[str] = ()) -> Any:
    """Return what public code gives an argument of this name; `inspect.Parameter.empty` where nothing is known.

    Parameters
    ----------
    beside
        The other arguments: what ``gamma`` means depends on them.
    """
    meaning = meaning_of(name)
    if meaning is not None:
        return sizes.value(meaning, name)
    hidden = sizes.given["hidden_size"]
    hidden = hidden if isinstance(hidden, int) else 64
    heads = next((count for count in (4, 2) if hidden % count == 0), 1)
    for pattern, value in _usual(hidden, heads, "dt" in beside).items():
        if re.fullmatch(pattern, name, re.IGNORECASE):
            return value
    return inspect.Parameter.empty


class _Tanh(str):
    """The name of a function that can be called as one: authors take either."""

    __slots__ = ()

    def __call__(self, x: Any = None) -> Any:
        return nn.Tanh() if x is None else torch.tanh(x)


TANH = _Tanh("tanh")


def _usual(hidden: int, heads: int, oscillates: bool) -> dict[str, Any]:
    return {
        r"(?:n|num)_?(?:attention_)?heads?|nheads?|heads?": heads,
        r"(?:head_?dim|d_?head|head_?size|d_k|d_v|dim_head)": hidden // heads,
        r"d_?state|state_dim|n_state|ssm_state_size": 16,
        r"d_?conv|conv_size|conv_kernel|kernel_size|ks": 4,
        r"expand|expansion_factor|expand_factor": 2,
        r"d_?ff|dim_?feedforward|intermediate_size|ffn_dim|mlp_dim|d_inner": 2 * hidden,
        r"dt|delta_t|time_step": 0.042,
        r"gamma": 2.7 if oscillates else 0.01,
        r"epsilon|eps": 4.7 if oscillates else 0.01,
        r"alpha": 0.5,
        r"leak(?:y|age)?(?:_rate)?|leaking_rate|leak_?rate|tau_inv": 0.5,
        r"tau": 2.0,
        r"theta": 100.0,
        r"memory_size|mem_size|memory_dim|mem_dim|slots|n_slots|num_slots|memory_length": 32,
        r"order": 8,
        r"dropout(?:_?(?:p|rate|prob))?|drop(?:_rate)?|p_?drop|zoneout|dropouti|dropouth|dropconnect|wdrop": 0.0,
        r"max_?len(?:gth)?|seq_?len(?:gth)?|l_?max|context_?len(?:gth)?|block_size|max_seq_?len(?:gth)?|"
        r"max_position_embeddings|time_?steps|sequence_length|length|T|window": 512,
        r"chunk_?(?:size|len)|segment": 16,
        r"bias|use_bias|biases": True,
        r"batch_?first": True,
        r"bidirectional|bidir": False,
        r"device": "cpu",
        r"nonlinearity|activation(?:_?(?:fn|func(?:tion)?))?|act|nonlin|act_fn|phi": TANH,
        r"(?:rnn_?)?cell_?(?:class|cls|fn|ctor)|cell_constructor": nn.GRUCell,
        r"(?:base_?)?rnn_?(?:class|cls|fn|module)": nn.GRU,
        r"n_?tok(?:en)?s?|num_tokens|vocab(?:ulary)?(?:_?size)?|n_?vocab|vocab_dim": 64,
        r"z_?(?:dim|size)|(?:n_?|num_?)?(?:gaussians?|mixtures?|modes?)": 8,
        r"(?:enc|encoder)_?(?:dim|size)|context_(?:dim|size)": hidden,
        r"rnn_type|cell_type|mode|rnn|cell": "GRU",
        r"spectral_radius|rho": 0.9,
        r"(?:input_)?scaling|scale|beta": 1.0,
        r"sparsity|density|connectivity": 0.5,
        r"seed": 0,
        r"layer_?(?:idx|id|index)|idx": 0,
        r"init(?:_?(?:std|range|scale))?|std|initializer_range": 0.02,
    }


def suggested(parameter: inspect.Parameter) -> list[Any]:
    """Return values that an argument without a known meaning may take, by its annotation: a start for the user."""
    written = str(parameter.annotation)
    for word, value in (("bool", True), ("float", 0.1), ("str", "tanh"), ("int", 8)):
        if word in written:
            return [value]
    return [8, 0.1, True, None]
