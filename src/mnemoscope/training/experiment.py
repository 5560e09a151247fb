"""An experiment as a TOML file: a network, a task, and the settings of `fit` or `fit_population`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import Description, UserError, expected, unknown
from mnemoscope.core.files import read_regular
from mnemoscope.core.seeds import check_seed
from mnemoscope.machines.workers import Workers
from mnemoscope.nn import NetworkSpec
from mnemoscope.tasks import Task
from mnemoscope.tasks import problem as create_problem
from mnemoscope.tasks.control import Environment
from mnemoscope.training.configuration import describe_network
from mnemoscope.training.control.learning import ppo_with, split_settings
from mnemoscope.training.control.settings import PPO
from mnemoscope.training.fitting import Run, fit_with
from mnemoscope.training.model import spec_for
from mnemoscope.training.options import Options
from mnemoscope.training.populations import fit_population

__all__ = ["Experiment", "read_experiment"]

_OTHERS = ("network", "task", "readout", "folder", "seeds", "layout", "workers")
_LARGEST = 2**20
"""Bytes of an experiment's file, at most."""
_POPULATION = ("layout", "workers")


@dataclass(frozen=True)
class Experiment:
    """A network, a task, and how it is trained.

    Attributes
    ----------
    network
        ``name`` (of the table, or ``FILE.py:CLASS``) and options; ``input_size`` is the task's where it is not given.
    task
        ``name`` and settings.
    settings
        Those of `fit`, or of `fit_population` where there are ``seeds``.
    """

    network: Mapping[str, Any]
    task: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that nothing is there that has no meaning, and that what is needed is."""
        known = [*Options.names(), *PPO.names(), *_OTHERS]
        for name in self.settings:
            if name not in known:
                raise unknown(f"an experiment has no setting {name!r}", name, known, "it has")
        for title, table in (("network", self.network), ("task", self.task)):
            if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
                raise UserError(f"an experiment must have a table [{title}] with a name, got {table!r}")
        if "iterations" not in self.settings:
            raise UserError("an experiment must say how many iterations")
        for name in _POPULATION:
            if name in self.settings and "seeds" not in self.settings:
                raise UserError(f"{name} has a meaning only with seeds = [..], a population")
        if "seeds" in self.settings and "seed" in self.settings:
            raise UserError("an experiment must have a seed or seeds, got both")

    def build_task(self) -> Task | Environment:
        """Return the task, or the environment."""
        return create_problem(self.task["name"], **{name: value for name, value in self.task.items() if name != "name"})

    def build_layer(self, task: Task | Environment, seed: int) -> Any:
        """Return the network, its weights drawn from a seed."""
        return self.describe(task).replace(seed=seed).build()

    def describe(self, task: Task | Environment) -> NetworkSpec:
        """Return the network's description, with the sizes that the task and a budget of parameters decide."""
        given = {name: value for name, value in self.network.items() if name != "name"}
        return spec_for(NetworkSpec(self.network["name"], **given), task).resolved()

    def run(
        self,
        *,
        folder: str | os.PathLike[str] | None = None,
        root: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        workers: Workers | None = None,
    ) -> Run | list[Run]:
        """Train, and record the run in `folder`, or in `root` by its content; a list of runs for a population.

        A population may be trained by the `workers` of a cluster.
        """
        task = self.build_task()
        settings: dict[str, Any] = {
            name: value for name, value in self.settings.items() if name not in ("network", "task")
        }
        readout = settings.pop("readout", "linear")
        folder = settings.pop("folder", None) if folder is None else folder
        if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
            raise expected("folder", "a path", folder)
        where: dict[str, Any] = {"folder": folder, "root": None if folder is not None else root, "progress": progress}
        if isinstance(task, Environment):
            return self._play(task, settings, readout, where)
        if "seeds" in settings:
            seeds = settings.pop("seeds")
            if not isinstance(seeds, list) or not seeds:
                raise expected("seeds", "a list of whole numbers", seeds)
            layers = [self.build_layer(task, check_seed(seed)) for seed in seeds]
            known = {"network": self._description(layers[0], task), "drawn": True}
            settings |= {} if workers is None else {"workers": workers}
            return fit_population(layers, task, seeds=seeds, readout=readout, known=known, **where, **settings)
        options = Options.make(settings)
        layer = self.build_layer(task, options.seed)
        known = {"network": self._description(layer, task), "drawn": True}
        return fit_with(layer, task, options, readout, known=known, **where)

    def _play(self, environment: Environment, settings: dict[str, Any], readout: Any, where: dict[str, Any]) -> Run:
        """Train in an environment."""
        asked = {"readout": readout != "linear", **{name: name in settings for name in ("seeds", *_POPULATION)}}
        for name in (name for name, given in asked.items() if given):
            raise UserError(
                f"{name} has no meaning in an environment ({environment.name}): one seed is trained, with heads"
            )
        options, own = split_settings(settings)
        layer = self.build_layer(environment, options.seed)
        known = {"network": self._description(layer, environment), "drawn": True}
        return ppo_with(layer, environment, options, own, known=known, **where)

    def _description(self, layer: Any, task: Task | Environment) -> dict[str, Any]:
        found = describe_network(layer)
        if "options" in found:
            return found
        spec = self.describe(task)
        more = {} if spec.digest is None else {"digest": spec.digest}
        options = {**spec.sizes, **spec.options}
        options |= {"advice": dict(spec.advice)} if spec.advice else {}
        options |= {"weights": spec.weights} if spec.weights else {}
        return {"name": self.network["name"], "options": options, "dtype": found["dtype"], **more}


def read_experiment(path: str | os.PathLike[str], changes: Mapping[str, Any] | None = None) -> Experiment:
    """Read an experiment from a TOML file.

    Parameters
    ----------
    path
        The file.
    changes
        Settings that replace those of the file; None values are left out.
    """
    file = Path(path)
    try:
        content = tomllib.loads(read_regular(file, _LARGEST).decode())
    except FileNotFoundError:
        raise UserError(f"there is no file {str(file)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{str(file)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except RecursionError:
        raise UserError(f"{str(file)!r} is not TOML: it is nested too deeply") from None
    except ValueError as error:  # also a whole number of thousands of digits
        raise UserError(f"{str(file)!r} is not TOML: {error}") from None
    for title in ("network", "task"):
        if isinstance(content.get(title), str):
            content[title] = {"name": content[title]}
        elif title not in content:
            raise expected(f"the experiment {str(file)!r}", f"with a table [{title}]", Description("one without"))
    content |= {name: value for name, value in (changes or {}).items() if value is not None}
    if (changes or {}).get("seed") is not None:
        content.pop("seeds", None)
    settings = {name: value for name, value in content.items() if name not in ("network", "task")}
    return Experiment(content["network"], content["task"], settings)
