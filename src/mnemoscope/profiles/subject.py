"""Network that a profile is of: its facts and fingerprint, and the commands that compute its numbers again."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from mnemoscope import __version__
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.advice import about_words
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.nn.options import public_class
from mnemoscope.nn.parameters import count_parameters
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.checks import forms_agree
from mnemoscope.profiles.row import NetworkFacts
from mnemoscope.profiles.section import Call

if TYPE_CHECKING:
    from mnemoscope.profiles.settings import Settings

__all__ = ["facts_of", "fingerprint", "network_words", "python_call", "size_words", "source_of", "spell"]

_PLAIN = (bool, int, float, str, type(None))


def facts_of(spec: NetworkSpec, network: Any) -> NetworkFacts:
    """Return the facts of a network that was built from a description."""
    module = getattr(network, "module", network)
    own = card(public_class(type(module)))
    return NetworkFacts(
        name=own.name if own else public_class(type(module)).__name__,
        class_name=public_class(type(module)).__qualname__,
        options={name: value if isinstance(value, _PLAIN) else repr(value) for name, value in spec.options.items()},
        input_size=_whole(network, "input_size"),
        hidden_size=_whole(network, "hidden_size"),
        num_layers=_whole(module, "num_layers"),
        output_size=_whole(network, "output_size"),
        kind=getattr(network, "kind", None),
        causal=bool(getattr(network, "causal", True)),
        parameters=count_parameters(network),
        state_size=_whole(network, "state_size"),
        weights="given" if spec.trained else "initialised",
        source=source_of(spec),
        guesses=tuple(getattr(network, "guesses", ())),
        agreement=forms_agree(network),
        reading=getattr(network, "reading", None) or None,
    )


def source_of(spec: NetworkSpec) -> str:
    """Return where a network comes from, in words."""
    if isinstance(spec.what, str):
        return spec.what
    if isinstance(spec.what, nn.Module):
        return f"a module of class {public_class(type(spec.what)).__name__}, given in Python"
    return f"{getattr(spec.what, '__name__', spec.what)}, given in Python"


def fingerprint(spec: NetworkSpec, network: Any, quick: bool, inputs: Any = None) -> str:
    """Return a hash of all that the results of one seed depend on, besides the seed."""
    known = {
        "source": source_of(spec),
        "sizes": spec.sizes,
        "options": {name: repr(value) for name, value in spec.options.items()},
        "advice": {name: repr(value) for name, value in spec.advice.items()},
        "weights": weights_digest(network),
        "structure": repr(network),
        "file": spec.digest,
        "quick": quick,
        **({} if inputs is None else {"inputs": hashlib.sha256(np.ascontiguousarray(inputs).tobytes()).hexdigest()}),
        "versions": [__version__, torch.__version__, np.__version__],
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _whole(network: Any, name: str) -> int | None:
    try:
        found = getattr(network, name, None)
    except Exception:  # a stranger's property may fail as it likes; then there is no number
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


_FLAGS = {
    "hidden_size": "--hidden",
    "input_size": "--input-size",
    "num_layers": "--layers",
    "parameters": "--parameters",
    "count": "--count",
}


def python_call(specs: Sequence[NetworkSpec], settings: Settings, fresh: bool, html: Any = None) -> str:
    """Return the line of Python that makes a profile again: sizes, options, seeds, budget, and where the page goes."""
    chosen = {
        "quick": settings.quick,
        "seed": settings.seed,
        "seeds": settings.seeds,
        "budget": settings.budget,
        "full": not settings.bounded and settings.budget is None,
        "train_minutes": settings.train_minutes,
        "fresh": fresh,
        "html": None if html is None else str(html),
    }
    more = {name: value for name, value in chosen.items() if value}
    more |= {} if settings.inputs is None else {"inputs": _Word(settings.inputs_file or "inputs")}
    given = [_given(each) for each in specs if not each.trained or each.weights is not None]
    shared = all(one == given[0] for one in given)
    if given and shared:
        more = {**given[0], **more}
    names = [_named(each) if shared or each.trained else f"ms.nn.{each!r}" for each in specs]
    function = "profile" if len(specs) == 1 else "compare"
    return f"ms.{function}({', '.join([*names, *(f'{name}={value!r}' for name, value in more.items())])})"


class _Word(str):
    """A name in a line of Python, which is not quoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _given(spec: NetworkSpec) -> dict[str, Any]:
    return {**spec.arguments, **({"advice": dict(spec.advice)} if spec.advice else {}), **spec.options}


def _named(spec: NetworkSpec) -> str:
    if isinstance(spec.what, str):
        return repr(spec.what)
    return "module" if isinstance(spec.what, nn.Module) else spec.name


def network_words(spec: NetworkSpec, input_size: int | None = None, *, sized: bool = True) -> str | None:
    """Return the network as commands take it, with its sizes; None when no command can name it.

    Without `sized` the usual hidden size is not added.
    """
    if not isinstance(spec.what, str):
        return None
    if spec.saved:
        return shlex.quote(spec.what)
    sizes = spec.arguments if input_size is None else {**spec.arguments, "input_size": input_size}
    usual = spec.parameters is None and spec.what in NETWORKS
    if sized and usual and getattr(NETWORKS[spec.what], "kind", None) == "recurrent":
        sizes = {"hidden_size": DEFAULT_SIZES["hidden_size"], **sizes}
    given = [*size_words(sizes), *(f"--set {shlex.quote(f'{name}={value}')}" for name, value in spec.options.items())]
    return " ".join([shlex.quote(spec.what), *given, *about_words({"advice": spec.advice, "weights": spec.weights})])


def size_words(sizes: Mapping[str, Any]) -> list[str]:
    """Return sizes as commands take them: ``--hidden 64``, ``--hidden 15,15`` of a matrix; not the usual count."""
    given = {name: size for name, size in sizes.items() if (name, size) != ("count", "recurrent")}
    return [f"{flag} {_typed(given[name])}" for name, flag in _FLAGS.items() if name in given]


def _typed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def spell(spec: NetworkSpec, call: Call, seed: int, inputs: str = "") -> str:
    """Return the command of a measure; a line of Python for a module that no command can name."""
    words = network_words(spec, call.input_size)
    if words is None:
        return _python(spec, call, seed)
    options = [_option(name, value) for name, value in call.options.items()]
    options += [f"--inputs {shlex.quote(inputs)}"] if inputs and call.driven else []
    seeded = [f"--seed {seed}"] if call.seeded or not spec.trained else []
    return " ".join(["mnemoscope measure", call.measure, words, *options, *seeded])


def _option(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {','.join(map(str, value)) if isinstance(value, tuple) else value}"


def _python(spec: NetworkSpec, call: Call, seed: int) -> str:
    keywords = {**call.options, **({"seed": seed} if call.seeded else {})}
    given = "".join(f", {name}={value!r}" for name, value in keywords.items())
    return f"ms.measures.{call.function_name}({_network(spec, call, seed)}{given})"


def _network(spec: NetworkSpec, call: Call, seed: int) -> str:
    """Return what stands for the network in a line of Python: the module itself, or how a class is built."""
    if spec.trained:
        return "module"
    sized = spec if call.input_size is None else spec.replace(input_size=call.input_size)
    return f"ms.nn.{sized.replace(seed=seed)!r}.build()"
