"""Tasks: problems that a network must remember something to solve."""

from mnemoscope.tasks.base import Batch, Task, create, names, task
from mnemoscope.tasks.copying import Copy

__all__ = ["Batch", "Copy", "Task", "create", "names", "task"]
