"""Proximal policy optimisation of any recurrent network in an environment."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from mnemoscope.core.errors import Description, expected, unknown
from mnemoscope.nn.storage import weights_digest
from mnemoscope.tasks import control
from mnemoscope.tasks.control import Environment
from mnemoscope.training.configuration import spec_of
from mnemoscope.training.control.improvement import Improvement
from mnemoscope.training.control.playing import Player, mean_return
from mnemoscope.training.control.settings import DEFAULTS, PPO
from mnemoscope.training.descent import Descent
from mnemoscope.training.fitting import Diverged, Run, conduct, ready
from mnemoscope.training.loop import Loop, LossAndScore
from mnemoscope.training.options import Options
from mnemoscope.training.state import Callback, Member
from mnemoscope.training.step import evaluating

__all__ = ["ppo", "ppo_population", "ppo_with", "split_settings"]

READOUT = "heads"
"""What a record says of what stands behind the network."""
_WITHOUT = ("data", "truncate")
"""Settings of `fit` that mean nothing here."""


def ppo(
    layer: nn.Module,
    environment: Environment | str,
    *,
    iterations: int,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    until: float = math.inf,
    **settings: Any,
) -> Run:
    """Train a recurrent network in an environment, in place, and test it.

    Every iteration plays ``worlds`` copies of the environment for ``frames`` steps, and makes ``epochs`` passes over
    what happened. Gradients go back through ``recurrence`` steps, from the state that the network was then in; it is
    that of a beginning wherever an episode begins.

    Parameters
    ----------
    layer
        A recurrent network, one's own or a stranger's; encoder and heads are put around it. A memory that grows gets
        room for the longest episode.
    environment
        An environment, or the name of one.
    iterations
        Updates: ``iterations * worlds * frames`` steps are played in all.
    seed
        Draws the episodes, the actions, encoder and heads, and what is tested.
    folder, root, callbacks, progress
        As in `fit`: the run is recorded, and goes on where it was.
    until
        When to stop, of `time.monotonic`, with `mnemoscope.runs.OutOfBudget`; what is recorded can go on later.
    settings
        Those of `PPO`, and of `Options`: ``lr`` (1e-3), ``optimizer`` (``"adam"``), ``clip_norm`` (0.5),
        ``batch_size`` (256, in steps), ``validate_every``, ``validation_size`` and ``test_size`` (128, in episodes),
        ``target``, ``schedule``, ``device``, ``precision``, ..

    Returns
    -------
    Run
        ``.score`` is the mean return of a test; ``.loss`` what it lacks to the optimum, or to 1 where nobody knows it.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> maze = ms.tasks.control.create("t-maze", corridor=2)
    >>> run = ms.training.ppo(ms.nn.LSTM(4, 8), maze, iterations=2, worlds=4, frames=16, test_size=8)
    >>> run.status, 0 <= run.score <= 1
    ('finished', True)
    """
    chosen = environment_of(environment)
    options, own = split_settings({"iterations": iterations, "seed": seed, **settings})
    return ppo_with(
        layer, chosen, options, own, callbacks=callbacks, progress=progress, folder=folder, root=root, until=until
    )


def environment_of(environment: Any) -> Environment:
    """Return the environment that is meant: a name with its default settings, or an `Environment`."""
    if isinstance(environment, Environment):
        return environment
    if not isinstance(environment, str):
        came = Description(f"a {type(environment).__name__}")
        raise expected("environment", "the name of an environment or an Environment", came)
    return control.create(environment)


def split_settings(given: dict[str, Any]) -> tuple[Options, PPO]:
    """Return the settings of every training and those of this one; one that does not exist is refused."""
    known = [name for name in (*PPO.names(), *Options.names()) if name not in _WITHOUT]
    for name in given:
        if name not in known:
            raise unknown(f"training in an environment has no setting {name!r}", name, known)
    general = DEFAULTS | {name: value for name, value in given.items() if name not in PPO.names()}
    if general.get("target") is not None:
        general.setdefault("validate_every", 10)
    return Options.make(general), PPO(**{name: value for name, value in given.items() if name in PPO.names()})


def ppo_with(
    layer: nn.Module,
    environment: Environment,
    options: Options,
    settings: PPO,
    *,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    known: dict[str, Any] | None = None,
    until: float = math.inf,
) -> Run:
    """Do what `ppo` does, from checked settings; `known` as in `fit_with`."""
    if folder is not None and root is not None:
        raise expected("root", "None where a folder is given", root)
    settings = settings.within(environment)
    model = ready(layer, environment, options, READOUT)
    player = Player(model, environment, options, settings)
    own = {"weights": weights_digest(model)} if known is None and root is not None else known or {}
    spec = spec_of("fit", model, environment, options, READOUT, {**own, "ppo": settings.to_dict()})
    step = Improvement(player)
    loop = Loop(step, environment, [Member(0, options, player)], lambda *_: step, None, callbacks, assess)
    return conduct(loop, model, spec, folder=folder, root=root, progress=progress, until=until)


def ppo_population(
    layers: Sequence[nn.Module],
    environment: Environment,
    *,
    iterations: int,
    seeds: Sequence[int],
    folder: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    **settings: Any,
) -> list[Run]:
    """Train several networks, one after the other, each with its seed; one that diverged has the status ``"failed"``.

    Parameters
    ----------
    folder
        Of all; each has a folder of its own within it.
    minutes
        Stop after these, with `mnemoscope.runs.OutOfBudget`; what is recorded can go on later.
    """
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    found = []
    for layer, seed in zip(layers, seeds, strict=True):
        place = None if folder is None else Path(folder) / f"seed-{seed}"
        try:
            found.append(
                ppo(layer, environment, iterations=iterations, seed=seed, folder=place, until=until, **settings)
            )
        except Diverged as failure:
            found.append(failure.run)
    return found


def assess(
    step: Descent, environment: Environment, data: Sequence[Iterator[Any]], carries: bool = False, loss: Any = None
) -> list[LossAndScore]:
    """Return what an agent lacks to the optimum, or to 1 where nobody knows it, and its mean return."""
    found = []
    with evaluating(step):
        for worlds in data[0]:
            mean = mean_return(step.model, environment, worlds, step.options)
            best = environment.optimum if environment.optimum == environment.optimum else 1.0
            found.append(LossAndScore(best - mean, mean))
    return found
