"""Facts of a network that a profile is of: name, sizes, where it comes from, and a fingerprint of its results."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import torch
from torch import nn

from mnemoscope import __version__
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.options import public_class
from mnemoscope.nn.parameters import count_parameters
from mnemoscope.nn.registry import card
from mnemoscope.nn.storage import weights_digest

__all__ = ["facts_of", "fingerprint", "source_of"]

_PLAIN = (bool, int, float, str, type(None))


def facts_of(spec: NetworkSpec, network: Any) -> dict[str, Any]:
    """Return ``row["network"]`` of a network that was built from a description."""
    module = getattr(network, "module", network)
    own = card(public_class(type(module)))
    return {
        "name": own.name if own else public_class(type(module)).__name__,
        "class": public_class(type(module)).__qualname__,
        "options": {name: value if isinstance(value, _PLAIN) else repr(value) for name, value in spec.options.items()},
        "input_size": _whole(network, "input_size"),
        "hidden_size": _whole(network, "hidden_size"),
        "num_layers": _whole(module, "num_layers"),
        "output_size": _whole(network, "output_size"),
        "kind": getattr(network, "kind", None),
        "causal": bool(getattr(network, "causal", True)),
        "parameters": count_parameters(network),
        "state_size": _whole(network, "state_size"),
        "weights": "trained" if spec.trained else "initialised",
        "source": source_of(spec),
        "guesses": list(getattr(network, "guesses", ())),
    }


def source_of(spec: NetworkSpec) -> str:
    """Return where a network comes from, in words."""
    if isinstance(spec.what, str):
        return spec.what
    if isinstance(spec.what, nn.Module):
        return f"a module of class {public_class(type(spec.what)).__name__}, given in Python"
    return f"{getattr(spec.what, '__name__', spec.what)}, given in Python"


def fingerprint(spec: NetworkSpec, network: Any, quick: bool) -> str:
    """Return a hash of all that the results of one seed depend on, besides the seed."""
    known = {
        "source": source_of(spec),
        "sizes": spec.sizes,
        "options": {name: repr(value) for name, value in spec.options.items()},
        "weights": weights_digest(network),
        "structure": repr(network),
        "file": spec.digest,
        "quick": quick,
        "versions": [__version__, torch.__version__, np.__version__],
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _whole(network: Any, name: str) -> int | None:
    try:
        found = getattr(network, name, None)
    except Exception:  # a stranger's property may fail as it likes; then there is no number
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
