"""Tasks: problems that a network must remember something to solve.

A task's class is imported when it is first used; those about images are in `relational`, environments in `control`.
"""

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy
from mnemoscope.tasks import control, relational
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, Splits
from mnemoscope.tasks.problems import Problem
from mnemoscope.tasks.registry import TABLE, create, get, names, problem, task

if TYPE_CHECKING:
    from mnemoscope.tasks.adding import *
    from mnemoscope.tasks.copying import *
    from mnemoscope.tasks.dyck import *
    from mnemoscope.tasks.group_composition import *
    from mnemoscope.tasks.matrices import *
    from mnemoscope.tasks.mnist import *
    from mnemoscope.tasks.mqar import *
    from mnemoscope.tasks.signals import *
    from mnemoscope.tasks.similarity import *
    from mnemoscope.tasks.text import *

_HOMES = {cls: file for file, _, cls in (place.partition(":") for place in TABLE.values()) if "." not in file}

__all__ = [
    "Batch",
    "Evaluation",
    "Problem",
    "Splits",
    "Task",
    "control",
    "create",
    "get",
    "names",
    "problem",
    "relational",
    "task",
]

__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*__all__, *_HOMES])
