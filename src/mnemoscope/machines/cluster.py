"""Workers of a Ray cluster: jobs as its tasks, begun again where their node dies, watched by the process that drives.

Ray's own errors are many lines; here each becomes one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.core.devices import VARIABLE as DEVICE
from mnemoscope.core.environment import environment
from mnemoscope.core.errors import MnemoscopeError, UserError, positive_int
from mnemoscope.core.memory import VARIABLE as MEMORY
from mnemoscope.machines.joining import join, one_line, ray_module
from mnemoscope.machines.stopping import GRACE, ask_to_stop, stop_asked, stops_when_asked
from mnemoscope.machines.workers import RETRIES, Answer, perform, value_of
from mnemoscope.runs import OutOfBudget

__all__ = ["RayWorkers"]

_POLL = 0.2
_NEWS = 1.0
"""Seconds between two looks of a worker at the board."""

_DATA = "MNEMOSCOPE_DATA"
_PASSED = (_DATA, MEMORY, DEVICE)
"""Variables that workers get from the process that drives them."""

_SHARE = 0.5
"""Of a node's memory that all workers on it may plan with."""


class RayWorkers:
    """The cores of a Ray cluster as workers; a context manager, which leaves the cluster at its end.

    Parameters
    ----------
    address
        ``HOST:PORT`` of a cluster; ``"auto"``: the one that runs here or that RAY_ADDRESS names, else a new one of this
        machine's cores; ``"local"``: always a new one.
    threads
        Cores, and threads of torch, of each worker.
    folder
        Where runs live, which every node has to see.
    retries
        Times that a job is begun again because its worker or its node has died.
    """

    def __init__(
        self, address: str = "auto", *, threads: int = 1, folder: Path | None = None, retries: int = RETRIES
    ) -> None:
        self.threads, self.retries = positive_int("threads", threads), retries
        self._ray = ray_module()
        join(self._ray, address)
        try:
            nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= threads]
            slots = [int(node["Resources"]["CPU"] // threads) for node in nodes]
            if not sum(slots):
                raise UserError(f"the Ray cluster has no node with {threads} free cores")
            self.count = sum(slots)
            shares = [node["Resources"].get("memory", math.inf) / n for node, n in zip(nodes, slots, strict=True)]
            self.memory = _SHARE * min(shares)
            self._check(nodes, folder)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        with contextlib.suppress(Exception):
            self._ray.shutdown()

    def run(
        self,
        work: str,
        jobs: Sequence[Mapping[str, Any]],
        tell: Callable[[int, Any], None] | None = None,
        until: float = math.inf,
    ) -> Iterator[tuple[int, Any]]:
        """Do jobs, as `Workers` says."""
        session = _Session(self, work, jobs, until)
        try:
            yield from session.answers(tell or (lambda *_: None))
        finally:
            session.end()

    def _check(self, nodes: Sequence[Mapping[str, Any]], folder: Path | None) -> None:
        """Raise one line when a node has other versions than this process, or does not see the same folders."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        probe = self._ray.remote(num_cpus=0, max_retries=0)(_looked)
        with _seen_by_all(folder) as mark:
            asked = [
                probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                    None if mark is None else str(mark), os.environ.get(_DATA)
                )
                for node in nodes
            ]
            try:
                found = self._ray.get(asked)
            except Exception as error:
                raise UserError(f"a node of the Ray cluster cannot run Mnemoscope: {one_line(error)}") from None
        here = _versions()
        for node, told in zip(nodes, found, strict=True):
            name = node.get("NodeManagerHostname") or node["NodeManagerAddress"]
            other = [
                f"{n} {here[n]} here and {told['versions'].get(n)} there"
                for n in here
                if told["versions"].get(n) != here[n]
            ]
            if other:
                raise UserError(
                    f"every node must have the versions of this process: on {name} it is {', '.join(other)}"
                )
            if not told["folder"]:
                raise UserError(f"node {name} does not see the folder of the runs, {str(folder)!r}: name a shared one")
            if not told["data"]:
                raise UserError(f"node {name} has no data folder {os.environ.get(_DATA)!r} ({_DATA}): share or copy it")


class _Session:
    """Jobs that are being done: a few more than there are workers are in the cluster's hands."""

    def __init__(self, workers: RayWorkers, work: str, jobs: Sequence[Mapping[str, Any]], until: float) -> None:
        self.workers, self.work, self.jobs, self.until = workers, work, jobs, until
        self.ray = workers._ray
        self.waiting = deque(range(len(jobs)))
        self.board = (
            self.ray.remote(num_cpus=0, max_restarts=0)(_Board).options(scheduling_strategy=_here(self.ray)).remote()
        )
        self.task = self.ray.remote(
            num_cpus=workers.threads, max_retries=workers.retries, retry_exceptions=False, max_calls=0
        )(_done)
        self.doing: dict[Any, int] = {}
        self.stopped: str | None = None
        self.patience = math.inf

    def answers(self, tell: Callable[[int, Any], None]) -> Iterator[tuple[int, Any]]:
        told = time.monotonic()
        while self.waiting or self.doing:
            self._look_at_time()
            while self.waiting and len(self.doing) < self.workers.count + 2:
                self._send(self.waiting.popleft())
            if not self.doing:
                break
            try:
                ready, _ = self.ray.wait(list(self.doing), num_returns=1, timeout=_POLL)
            except self.ray.exceptions.RayError as error:  # the head of the cluster is gone
                raise self._ended(error) from None
            if time.monotonic() - told > _NEWS:
                told = time.monotonic()
                with contextlib.suppress(self.ray.exceptions.RayError):  # news are no loss
                    for number, news in self.ray.get(self.board.news.remote(), timeout=_POLL).items():
                        tell(number, news)
            for one in ready:
                number = self.doing.pop(one)
                answer, where = self._got(one)
                if "stopped" in answer:
                    self.stopped = answer["stopped"]
                    self.waiting.clear()
                else:
                    yield number, value_of(answer, where)
        if self.stopped is not None:
            raise OutOfBudget(self.stopped)

    def _send(self, number: int) -> None:
        seconds = None if math.isinf(self.until) else self.until - time.monotonic()
        share = {} if math.isinf(self.workers.memory) else {MEMORY: str(self.workers.memory / 2**30)}
        variables = share | {name: os.environ[name] for name in _PASSED if name in os.environ}
        job = json.dumps(self.jobs[number])
        try:
            given = self.task.remote(self.work, job, number, seconds, self.workers.threads, variables, self.board)
        except self.ray.exceptions.RayError as error:  # its store is full
            raise self._ended(error) from None
        self.doing[given] = number

    def _got(self, one: Any) -> tuple[Answer, str]:
        try:
            answer, where = self.ray.get(one)
        except self.ray.exceptions.RayError as error:
            raise self._ended(error) from None
        return answer, where if where != socket.gethostname() else ""

    def _ended(self, error: Exception) -> MnemoscopeError:
        """Return the one line for an error of Ray: a worker died again and again, or the cluster cannot go on."""
        known = self.ray.exceptions
        died = isinstance(error, known.WorkerCrashedError | known.NodeDiedError | known.OutOfMemoryError)
        what = f"a worker of the Ray cluster died {self.workers.retries + 1} times at the same work"
        words = f"{what if died else 'the Ray cluster failed'}: {one_line(error)}"
        return MnemoscopeError(f"{words}; what was done is kept where it is recorded")

    def _look_at_time(self) -> None:
        """Ask the workers to stop when this process was asked; leave those that do not."""
        if not stop_asked():
            return
        if math.isinf(self.patience):
            self.patience = time.monotonic() + GRACE
            self.waiting.clear()
            self.stopped = "it was asked to stop"
            self.board.stop.remote()
        elif time.monotonic() > self.patience:
            raise OutOfBudget("it was asked to stop")

    def end(self) -> None:
        """Break off what is still being done; what it came to is kept by the jobs themselves."""
        with contextlib.suppress(Exception):
            for one in self.doing:
                self.ray.cancel(one, force=True)
            self.ray.kill(self.board)


class _Board:
    """An actor beside the driving process: the last news of each job, and whether to stop."""

    def __init__(self) -> None:
        self._news: dict[int, Any] = {}
        self._stop = False

    def post(self, number: int, news: str | None) -> bool:
        """Take the news of a job; say whether it is to stop."""
        if news is not None:
            self._news[number] = json.loads(news)
        return self._stop

    def news(self) -> dict[int, Any]:
        """Return the news since it was asked before."""
        found, self._news = self._news, {}
        return found

    def stop(self) -> None:
        """Let all stop."""
        self._stop = True


def _done(
    work: str, job: str, number: int, seconds: float | None, threads: int, variables: Mapping[str, str], board: Any
) -> tuple[Answer, str]:
    """Do a job on a node. Another thread posts its news and asks whether to stop, so that the work waits for nobody."""
    import ray
    import torch

    for name in _PASSED:  # the process may have had a job of another driver before
        os.environ.pop(name, None)
    os.environ.update(variables)
    torch.set_num_threads(threads)
    news: deque[str] = deque(maxlen=1)
    ended = threading.Event()

    def post() -> None:
        while not ended.wait(_NEWS):
            with contextlib.suppress(Exception):  # whoever drives may be gone
                if ray.get(board.post.remote(number, news.pop() if news else None), timeout=10 * _NEWS):
                    ask_to_stop()

    poster = threading.Thread(target=post, daemon=True)
    with stops_when_asked():  # and not those that this process is given afterwards
        poster.start()
        answer = perform(work, json.loads(job), lambda told: news.append(json.dumps(told)), seconds)
        ended.set()
        poster.join()
    return answer, socket.gethostname()


def _looked(mark: str | None, data: str | None) -> dict[str, Any]:
    """Return what a node has: versions, whether it sees the driver's folder, and the data."""
    return {
        "versions": _versions(),
        "folder": mark is None or Path(mark).is_file(),
        "data": not data or Path(data).is_dir(),
    }


def _versions() -> dict[str, str]:
    found: dict[str, str] = environment()["versions"]
    return {name: found[name] for name in ("mnemoscope", "python", "torch") if name in found}


@contextlib.contextmanager
def _seen_by_all(folder: Path | None) -> Iterator[Path | None]:
    """Put a file into a folder for as long as nodes look for it."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f".seen-{platform.node()}-{os.getpid()}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


def _here(ray: Any) -> Any:
    """Return the wish for this process's own node, so that the loss of another one does not touch it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
