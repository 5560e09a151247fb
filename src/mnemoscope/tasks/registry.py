"""Table of tasks: the file and class of each by its name, open to other packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mnemoscope.core.errors import UserError, nearest, unknown
from mnemoscope.core.registry import Registry
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.control.base import Environment
from mnemoscope.tasks.control.registry import ENVIRONMENTS
from mnemoscope.tasks.control.registry import create as create_environment

__all__ = ["TABLE", "TASKS", "create", "get", "names", "problem", "task"]

TABLE = {
    "adding": "adding:Adding",
    "comparison": "relational.comparison:Comparison",
    "copy": "copying:Copy",
    "copy-sinus": "signals:CopySinus",
    "copying": "copying:Copying",
    "denoise": "copying:Denoise",
    "dist-n": "relational.distribution:DistributionN",
    "dist-n-restricted": "relational.distribution:RestrictedDistributionN",
    "dist3": "relational.distribution:Distribution3",
    "dyck": "dyck:Dyck",
    "games-between": "relational.games:Between",
    "games-colour-shape": "relational.games:ColourShape",
    "games-left-of": "relational.games:LeftOf",
    "games-occurs": "relational.games:Occurs",
    "games-row-matching": "relational.games:RowMatching",
    "games-same": "relational.games:Same",
    "games-xoccurs": "relational.games:XOccurs",
    "group-composition": "group_composition:GroupComposition",
    "identity-rules": "relational.identity_rules:IdentityRules",
    "identity-rules-4": "relational.identity_rules:IdentityRules4",
    "identity-rules-4-flipped": "relational.identity_rules:IdentityRules4Flipped",
    "identity-rules-4-flipped-missing": "relational.identity_rules:IdentityRules4FlippedMissing",
    "identity-rules-4-missing": "relational.identity_rules:IdentityRules4Missing",
    "lag-copy": "signals:LagCopy",
    "listops": "listops:ListOps",
    "matrix-copy": "matrices:MatrixCopy",
    "matrix-recall": "matrices:MatrixRecall",
    "mnist": "mnist:MNIST",
    "mqar": "mqar:MQAR",
    "mqar-compositional": "mqar:CompositionalMQAR",
    "mqar-forgetting": "mqar:ForgettingMQAR",
    "parity": "signals:Parity",
    "pathfinder": "pathfinder:Pathfinder",
    "pmnist": "mnist:PermutedMNIST",
    "ptb": "text:PennTreebank",
    "retrieval": "retrieval:Retrieval",
    "rmts": "relational.matching:RMTS",
    "rmts-3": "relational.matching:RMTS3",
    "same-different": "relational.same_different:SameDifferent",
    "same-different-6": "relational.same_different:SameDifferent6",
    "scifar": "scifar:SequentialCIFAR",
    "selective-copy": "copying:SelectiveCopy",
    "separated-inputs": "relational.same_different:SeparatedInputs",
    "shakespeare": "text:Shakespeare",
    "sinus": "signals:Sinus",
    "smnist": "mnist:SequentialMNIST",
    "start-end-similarity": "similarity:StartEndSimilarity",
    "transfer-copy": "copying:TransferCopy",
    "transitive-comparison": "relational.comparison:TransitiveComparison",
}
"""File and class of each task; a file is imported when its task is asked for. `tests/tasks/test_registry.py` keeps it
true."""

TASKS: Registry[type[Task]] = Registry(
    "task",
    "mnemoscope.tasks",
    table={name: f"mnemoscope.tasks.{place.split(':')[0]}" for name, place in TABLE.items()},
    listed="mnemoscope tasks",
)

K = TypeVar("K", bound="type[Task]")


def task(name: str) -> Callable[[K], K]:
    """Return a class decorator that registers a task under `name`."""

    def file(cls: K) -> K:
        cls.name = name
        TASKS.register(name)(cls)
        return cls

    return file


def names() -> list[str]:
    """Return the names of all tasks, sorted."""
    return TASKS.names()


def get(name: str) -> type[Task]:
    """Return the class of a task by its name, or raise with the nearest."""
    return TASKS[name]


def problem(name: str, /, **settings: Any) -> Task | Environment:
    """Build a task or an environment by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.tasks.problem("t-maze", corridor=5), ms.tasks.problem("copy", delay=5)
    (TMaze(corridor=5), Copy(delay=5))
    """
    if name in TASKS:
        return create(name, **settings)
    if name not in ENVIRONMENTS and nearest(name, TASKS) is None and (near := nearest(name, ENVIRONMENTS)):
        raise UserError(f"there is no task or environment named {name!r}; did you mean {near!r}?")
    return create_environment(name, **settings) if name in ENVIRONMENTS else create(name, **settings)


def create(name: str, /, **settings: Any) -> Task:
    """Build a task by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.tasks.create("copy", delay=100)
    Copy(delay=100)
    """
    if name not in TASKS and name in ENVIRONMENTS:
        raise UserError(
            f"{name} is an environment, not a task: mnemoscope.tasks.control.create builds it, and "
            "mnemoscope.training.ppo trains in it"
        )
    cls = get(name)
    known = list(inspect.signature(cls).parameters)
    for setting in settings:
        if setting not in known:
            raise unknown(f"the task {name} has no setting {setting!r}", setting, known, "it has")
    return cls(**settings)
