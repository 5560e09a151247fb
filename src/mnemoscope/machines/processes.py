"""Processes of this machine that do jobs, each one at a time; one that dies is replaced."""

from __future__ import annotations

import json
import math
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import mnemoscope
from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.memory import VARIABLE as MEMORY
from mnemoscope.core.memory import allowance
from mnemoscope.machines.stopping import GRACE, stop_asked, stops_on_signals
from mnemoscope.machines.workers import RETRIES, perform, value_of
from mnemoscope.runs import OutOfBudget

__all__ = ["Processes", "process_command", "serve"]

_POLL = 0.2
_WORDS = 2**14


class Processes:
    """Workers that are processes of this machine. They end with the process that has started them.

    Parameters
    ----------
    count
        How many.
    threads
        Of each.
    retries
        Times that a job is begun again because its process has died.
    """

    def __init__(self, count: int, threads: int = 1, retries: int = RETRIES) -> None:
        self.count, self.threads, self.retries = count, threads, retries
        self.memory = allowance() / count

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


@dataclass
class _Process:
    """One process, the job that it has, and what it wrote of a line that is not whole yet."""

    popen: subprocess.Popen[bytes]
    errors: IO[bytes]
    job: int | None = None
    partial: bytes = b""

    def send(self, line: Any) -> None:
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(json.dumps(line).encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone: whoever reads what it says sees that too

    def last_words(self) -> str:
        """Return how it ended, and the last line that it said."""
        code = self.popen.wait()
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - _WORDS))
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        how = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"
        return f"it {how}" + (f", after {said[-1].strip()!r}" if said else "")

    def close(self) -> None:
        self.popen.kill()
        for pipe in (self.popen.stdin, self.popen.stdout, self.errors):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # what it was still to be told
        self.popen.wait()


@dataclass
class _Session:
    """Jobs that are being done."""

    workers: Processes
    work: str
    jobs: Sequence[Mapping[str, Any]]
    until: float
    processes: list[_Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = deque(range(len(self.jobs)))
        self.deaths = dict.fromkeys(self.waiting, 0)
        self.selector = selectors.DefaultSelector()
        self.stopped: str | None = None
        self.patience = math.inf

    def answers(self, tell: Callable[[int, Any], None]) -> Iterator[tuple[int, Any]]:
        for _ in range(min(self.workers.count, len(self.jobs))):
            self._start()
        while any(one.job is not None for one in self.processes):
            self._look_at_time()
            for key, _ in self.selector.select(_POLL):
                for number, answer in self._heard(key.data):
                    if "news" in answer:
                        tell(number, answer["news"])
                    elif "stopped" not in answer:
                        yield number, value_of(answer)
        if self.stopped is not None:
            raise OutOfBudget(self.stopped)

    def _start(self) -> None:
        environment = os.environ | {
            name: str(self.workers.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        environment |= {MEMORY: str(self.workers.memory / 2**30)}
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its process; a pipe nobody reads would block it
        popen = subprocess.Popen(
            process_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
        )
        process = _Process(popen, errors)
        assert popen.stdout is not None
        self.processes.append(process)
        self.selector.register(popen.stdout, selectors.EVENT_READ, process)
        process.send({"threads": self.workers.threads})
        self._give(process)

    def _give(self, process: _Process) -> None:
        """Give a process the next job, or send it home."""
        process.job = self.waiting.popleft() if self.waiting else None
        if process.job is None:
            process.send(None)
            return
        seconds = None if math.isinf(self.until) else self.until - time.monotonic()
        process.send({"number": process.job, "work": self.work, "job": self.jobs[process.job], "seconds": seconds})

    def _heard(self, process: _Process) -> Iterator[tuple[int, dict[str, Any]]]:
        """Give what a process has said in whole lines; begin its job elsewhere when it has died."""
        assert process.popen.stdout is not None
        data = os.read(process.popen.stdout.fileno(), 2**16)
        if not data:
            self._lost(process)
            return
        *lines, process.partial = (process.partial + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            number = told.pop("number")
            if "stopped" in told:
                self.stopped = told["stopped"]
                self.waiting.clear()
            if "news" not in told:
                self._give(process)
            yield number, told

    def _lost(self, process: _Process) -> None:
        self.selector.unregister(process.popen.stdout)  # type: ignore[arg-type]
        self.processes.remove(process)
        job = process.job
        words = process.last_words()
        process.close()
        if job is None or self.stopped is not None:
            return
        self.deaths[job] += 1
        if stop_asked():
            self.stopped = "it was asked to stop"
        elif self.deaths[job] > self.workers.retries:
            times = "once" if self.deaths[job] == 1 else f"{self.deaths[job]} times"
            raise MnemoscopeError(
                f"a process died {times} at the same work: {words}; what was done is kept where it is recorded"
            )
        else:
            self.waiting.appendleft(job)
            self._start()

    def _look_at_time(self) -> None:
        """Ask the processes to stop when this one was asked; end those that do not."""
        if not stop_asked():
            return
        if math.isinf(self.patience):
            self.patience = time.monotonic() + GRACE
            self.waiting.clear()
            for one in self.processes:
                one.popen.send_signal(signal.SIGTERM)
        elif time.monotonic() > self.patience:
            raise OutOfBudget("it was asked to stop")

    def end(self) -> None:
        self.selector.close()
        for process in self.processes:
            process.close()


def process_command() -> list[str]:
    """Return what starts a process with the modules of this one, and with nothing of the current folder.

    Isolated (``-I``), Python reads neither PYTHONPATH nor the current folder, so that no file there named as a module
    is run for it; the places of our modules are given by name.
    """
    own = str(Path(mnemoscope.__file__).parents[1])
    places = [own, *(path for path in sys.path if path not in ("", own) and not _is_here(path))]
    code = "import sys; sys.path[:] = {!r}; from mnemoscope.machines.processes import serve; serve()"
    return [sys.executable, "-I", "-c", code.format(places)]


def _is_here(path: str) -> bool:
    return not Path(path).is_absolute() or Path(path).resolve() == Path.cwd().resolve()


def serve() -> None:
    """Do the jobs that come on standard input, a line each, until there are no more, or their sender has ended."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a user's code prints is not for whoever reads the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has started this one
    lines: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(lines,), daemon=True).start()
    import torch

    torch.set_num_threads(lines.get()["threads"])

    def say(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    with stops_on_signals():
        while (given := lines.get()) is not None:
            number = given["number"]

            def tell(news: Any, number: int = number) -> None:
                say({"number": number, "news": news})

            say({"number": number, **perform(given["work"], given["job"], tell, given["seconds"])})


def _receive(lines: queue.SimpleQueue[Any]) -> None:
    """Take lines from standard input; end the process when it ends, since whoever started it is gone."""
    rest = b""
    while data := os.read(0, 2**16):  # not sys.stdin, whose lock this process could then not take when it ends
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines.put(json.loads(line))
    os._exit(1)
