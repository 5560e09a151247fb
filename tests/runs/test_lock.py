"""Two processes never write one run, and a killed one leaves no lock behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.runs.lock import Held, Lock, holder

HOLD = """
import sys, time
from mnemoscope.runs.lock import Lock
lock = Lock(__import__("pathlib").Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other():
    """Start a process that holds a lock; ended after the test."""
    started = []

    def start(path):
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_process_is_told_who_has_it(root, spec, other, contents):
    runs.open(spec).close()
    folder = next(root.iterdir() if not (root / "index.sqlite").exists() else (p for p in root.iterdir() if p.is_dir()))
    process = other(folder / "lock")
    before = contents(folder)
    with pytest.raises(UserError) as caught:
        runs.open(spec)
    words = f"run {folder.name} is in use by process {process.pid}: wait until it ends, or end it"
    assert str(caught.value) == words
    assert runs.load(folder).status == "running"
    assert runs.load(folder).owner == f"process {process.pid}"
    assert runs.index(root)[0]["status"] == "running"
    assert contents(folder) == before
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert runs.load(folder).status == "interrupted"
    assert runs.index(root)[0]["status"] == "interrupted"
    with runs.open(spec) as run:
        run.append({"step": 1})


def test_one_process_has_a_run_once(root, spec):
    with runs.open(spec) as run:
        with pytest.raises(UserError, match=rf"in use by process {os.getpid()} \(this one\)"):
            runs.open(spec)
        assert holder(run.folder / "lock") == f"process {os.getpid()} (this one)"
        assert runs.load(run.folder).status == "running"
        with pytest.raises(UserError):
            runs.open(spec)  # looking must not have given the lock up
    runs.open(spec).close()


def test_looking_does_not_give_the_lock_up(tmp_path, other):
    path = tmp_path / "lock"
    lock = Lock(path)
    lock.acquire()
    for _ in range(3):
        assert holder(path) is not None
    code = "import sys, pathlib; from mnemoscope.runs.lock import holder; print(holder(pathlib.Path(sys.argv[1])))"
    seen = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == f"process {os.getpid()}"
    lock.release()
    assert holder(path) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_its_parents_lock(tmp_path):
    # A population's worker that outlives its killed driver must not keep the run locked.
    path = tmp_path / "lock"
    ready, told = os.pipe()
    driver = os.fork()
    if driver == 0:
        lock = Lock(path)
        lock.acquire()
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        os.write(told, f"{child}\n".encode())
        time.sleep(30)
        os._exit(0)
    child = int(os.read(ready, 100))
    assert holder(path) == f"process {driver}"
    os.kill(driver, signal.SIGKILL)
    os.waitpid(driver, 0)
    try:
        assert holder(path) is None
        Lock(path).acquire()
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_is_written_in_the_lock_does_not_matter(tmp_path, other):
    path = tmp_path / "lock"
    other(path)
    for text in (b"", b"junk", b"12 34 56", b"-5 host", b"\xff\xfe", b"9" * 5000):
        path.write_bytes(text)
        with pytest.raises(Held) as caught:
            Lock(path).acquire()
        assert caught.value.owner == "another process"
    path.write_text("77 elsewhere\n")
    assert holder(path) == "process 77 on elsewhere"
    path.write_text(f"77 {socket.gethostname()}\n")
    assert holder(path) == "process 77"


def test_threads_wait_for_each_other(tmp_path):
    inside, most = [], []

    def enter():
        lock = Lock(tmp_path / "lock")
        lock.acquire(patience=30)
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        lock.release()

    threads = [threading.Thread(target=enter) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(UserError):
        Lock(tmp_path / "lock").acquire()
    assert (tmp_path / "target").read_text() == "precious"
