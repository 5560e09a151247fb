"""Workers: whoever does jobs elsewhere, in processes of this machine or on a cluster. The one way to send work away.

Work is a function that both sides can import, named ``package.module:function``. It takes a job, plain JSON, and a
function to tell of its progress, and returns JSON. It keeps what it does in a folder that both sides see, since a job
whose worker dies is given to another one, which has to go on there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.machines.stopping import limited
from mnemoscope.runs import OutOfBudget
from mnemoscope.runs.indexing import left_to_driver
from mnemoscope.runs.lock import patient

__all__ = ["RETRIES", "Answer", "Tell", "Work", "Workers", "perform", "value_of"]

Tell = Callable[[Any], None]
"""Is given news of a job, JSON, for whoever watches."""

Work = Callable[[Mapping[str, Any], Tell], Any]
Answer = dict[str, Any]
"""What a worker says of a job: its ``value``, or what has ended it: ``stopped``, ``mistake`` or ``failed``, and why."""

RETRIES = 3
"""Times that a job is begun again because its worker has died."""


class Workers(Protocol):
    """Several workers, each with one job at a time."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def threads(self) -> int:
        """Cores, and threads of torch, that each has."""

    @property
    def memory(self) -> float:
        """Bytes that each may take; infinite where nobody has said."""

    def run(
        self,
        work: str,
        jobs: Sequence[Mapping[str, Any]],
        tell: Callable[[int, Any], None] | None = None,
        until: float = math.inf,
    ) -> Iterator[tuple[int, Any]]:
        """Do jobs, and give the number of each with its value, in the order in which they are done.

        Raises the `UserError` of the first job that has one, a `MnemoscopeError` where work fails or a worker dies
        again and again, and `OutOfBudget` where time is up; what was done until then is kept by the jobs themselves.

        Parameters
        ----------
        work
            What is done with each job: ``package.module:function``.
        jobs
            JSON.
        tell
            Is given the number of a job and its news.
        until
            When to stop, of `time.monotonic`.
        """


def perform(work: str, job: Mapping[str, Any], tell: Tell, seconds: float | None = None) -> Answer:
    """Do a job within a worker, and return what there is to say of it.

    Parameters
    ----------
    seconds
        That are left for it.
    """
    module, _, name = work.partition(":")
    try:
        function: Work = getattr(import_module(module), name)
        with limited(seconds), left_to_driver(), patient():
            return {"value": json.loads(json.dumps(function(job, tell)))}
    except OutOfBudget as error:
        return {"stopped": str(error)}
    except UserError as error:
        return {"mistake": str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}


def value_of(answer: Answer, where: str = "") -> Any:
    """Return the value of an answer, or raise what it says instead.

    Parameters
    ----------
    where
        The machine that it comes from, if that is another one.
    """
    place = f"on {where}: " if where else ""
    if "stopped" in answer:
        raise OutOfBudget(answer["stopped"])
    if "mistake" in answer:
        raise UserError(f"{place}{answer['mistake']}")
    if "failed" in answer:
        raise MnemoscopeError(f"{place}a worker failed: {answer['failed']}; what was done is kept where it is recorded")
    return answer["value"]
