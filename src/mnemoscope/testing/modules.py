"""Checks of a plain module: what it computes, in whatever way it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from torch import nn

from mnemoscope.nn import NetworkSpec
from mnemoscope.testing.checking import check
from mnemoscope.testing.subject import INPUT_SIZE, WIDTH, Factory, Subject

__all__ = ["MODULE_CHECKS", "adapted", "check_reading"]

MODULE_CHECKS = (
    "check_reading",
    # numbers
    "check_answers",
    "check_repeatable",
    "check_inputs_kept",
    "check_float64",
    # causality
    "check_causal",
    "check_answers_causal",
    # state
    "check_chunked",
    "check_init_state",
    "check_step",
    # examples of a batch
    "check_one_by_one",
    "check_answers_alone",
    # gradients
    "check_gradient_input",
    "check_gradient_state",
    "check_gradient_parameters",
    "check_training_step",
    "check_answers_gradients",
    # saving
    "check_state_dict",
    "check_deepcopy",
    "check_safetensors",
    "check_answers_copies",
)
"""Names of the checks that every module can keep, with and without a state: nothing of how it is called."""


def adapted(factory: Factory | str, about: Mapping[str, Any] = MappingProxyType({})) -> Callable[[], nn.Module]:
    """Return what builds the module at small sizes and understands how it is called, as `mnemoscope.adapt` does.

    Parameters
    ----------
    factory
        A class or a function that builds the module, ``file.py:Class``, or a name.
    about
        Advice on how it is called, a file of weights, sizes and options, as `mnemoscope.nn.NetworkSpec` takes them.
    """
    bare = NetworkSpec(factory, **about)
    sizes: dict[str, Any] = {} if bare.trained else {"input_size": INPUT_SIZE, "hidden_size": WIDTH}

    def build() -> nn.Module:
        made: nn.Module = NetworkSpec(factory, **{**sizes, **about}).build()
        return made

    def build_as_it_is() -> nn.Module:
        made: nn.Module = NetworkSpec(factory(), **about).build()  # type: ignore[operator]
        return made

    found = build_as_it_is if inspect.isfunction(factory) and not inspect.signature(factory).parameters else build
    found.__name__ = bare.name
    return found


@check("let the module be read as a cell, a recurrent layer or a block, or say how it is called")
def check_reading(subject: Subject) -> None:
    """How the module is called, and what its state is, is found out; where it is not, nothing else is checked."""
    subject.build()
