"""The script for Slurm, run by bash with a stand-in for Slurm's command and for ours."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from mnemoscope.machines import array_script

OURS = """#!/bin/bash
echo "$@" >> {folder}/called
trap 'exit {stopped}' USR1
touch {folder}/started
for _ in $(seq {tenths}); do sleep 0.1; done
exit {code}
"""


@pytest.fixture
def task(tmp_path):
    """Start the script as Slurm starts a task of an array; returns the process."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")

    def start(tenths, code=0, stopped=1):
        programs = {
            "mnemoscope": OURS.format(folder=tmp_path, tenths=tenths, code=code, stopped=stopped),
            "scontrol": f'#!/bin/bash\necho "$@" >> {tmp_path}/requeued\n',
        }
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        command = ["mnemoscope", "study", "run", "small", "--folder", "/a b"]
        script = array_script("small", command, ["mnemoscope", "runs", "merge", "/a b"], 64)
        (tmp_path / "script").write_text(script)
        ids = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "77", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        process = subprocess.Popen(["bash", str(tmp_path / "script")], env=os.environ | ids)
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        return process

    return start


def requeued(tmp_path):
    file = tmp_path / "requeued"
    return file.read_text() if file.exists() else None


@pytest.mark.parametrize("code", [0, 2])
def test_a_task_that_ends_is_not_put_back(task, tmp_path, code):
    assert task(1, code).wait(20) == code
    assert requeued(tmp_path) is None
    assert (tmp_path / "called").read_text() == "study run small --folder /a b --shard 3/64\n"


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_task_whose_time_is_up_is_put_back(task, tmp_path, number):
    process = task(200)
    process.send_signal(number)
    assert process.wait(20) == 1
    assert requeued(tmp_path) == "requeue 77_3\n"


def test_a_task_that_ends_by_itself_after_the_signal_is_not_put_back(task, tmp_path):
    process = task(200, stopped=0)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(20) == 0
    assert requeued(tmp_path) is None
