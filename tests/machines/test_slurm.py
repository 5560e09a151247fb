"""The script for Slurm, run by bash with a stand-in for Slurm's command and for ours."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tests.machines.small import numbers

from mnemoscope.machines import array_script
from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import execute
from mnemoscope.training.populations import usual_layout

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


@pytest.mark.parametrize(("number", "wanted"), [(signal.SIGUSR1, "requeue 77_3\n"), (signal.SIGTERM, None)])
def test_a_task_whose_time_is_up_is_put_back_and_a_cancelled_one_is_not(task, tmp_path, number, wanted):
    process = task(200)
    process.send_signal(number)
    assert process.wait(20) == 1  # the program was told, and has ended
    assert requeued(tmp_path) == wanted


def test_a_task_that_ends_by_itself_after_the_signal_is_not_put_back(task, tmp_path):
    process = task(200, stopped=0)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(20) == 0
    assert requeued(tmp_path) is None


class Slurm:
    """Slurm of one machine: `sbatch` reads the directives and runs the array, `scontrol` notes what to requeue."""

    def __init__(self, folder):
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        run = f"import sys; sys.path[:0] = {sys.path!r}; from mnemoscope.cli.main import app; app()"
        programs = {
            "mnemoscope": f'#!/bin/bash\nexec {shlex.quote(sys.executable)} -c {shlex.quote(run)} "$@"\n',
            "scontrol": f'#!/bin/bash\necho "$@" >> {shlex.quote(str(folder / "requeued"))}\n',
        }
        for name, text in programs.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def sbatch(self, script, time_is_up):
        """Run every task, again where it is requeued; at its first time it hears SIGUSR1 when `time_is_up(number)`."""
        given = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", script, re.MULTILINE))
        first, last = map(int, given["array"].split("-"))
        assert (given["signal"], given["open-mode"]) == ("B:USR1@120", "append")
        assert "requeue" in given
        codes = []
        for number in range(first, last + 1):
            log = given["output"].replace("%x", given["job-name"]).replace("%A", "77").replace("%a", str(number))
            for attempt in range(2):
                with (self.folder / log).open("a") as out:
                    process = subprocess.Popen(
                        ["bash", "-c", script], stdout=out, stderr=out, env=self.environment(number), cwd=self.folder
                    )
                while attempt == 0 and process.poll() is None and not time_is_up(number):
                    time.sleep(0.02)
                if attempt == 0:
                    process.send_signal(signal.SIGUSR1)  # B: to the shell alone
                codes.append(process.wait(300))
                asked = requeued(self.folder) or ""
                if asked.count(f"requeue 77_{number}\n") <= attempt:
                    break
        return codes

    def environment(self, number=1):
        """Return what a task of the array sees."""
        path = f"{self.bin}:{os.environ['PATH']}"
        own = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "1"}
        return os.environ | own | {"PATH": path, "MNEMOSCOPE_RUNS": str(self.folder / "runs")}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_printed_script_put_back_in_the_middle_does_the_whole(tmp_path):
    slurm, place = Slurm(tmp_path), tmp_path / "a folder's place"
    more = ["--scale", "smoke", "--set", "iterations=200", "--layout", "sequential"]
    command = ["mnemoscope", "study", "run", "matrix-fig-5", *more, "--shard", "1/2", "--folder", str(place), "--slurm"]
    script = subprocess.run(command, env=slurm.environment(), capture_output=True, text=True, check=True).stdout

    def trains(number):
        return bool(list(place.glob(f"work/*shard-{number}-*/study-*/population/group-*/metrics*")))

    assert slurm.sbatch(script, trains) == [1, 0, 1, 0]
    merge = script.rstrip().splitlines()[-1].removeprefix("# When all are done: ")
    subprocess.run(["bash", "-c", merge], env=slurm.environment(), check=True, capture_output=True)
    study = STUDIES["matrix-fig-5"].changed("smoke", {"iterations": 200})
    with usual_layout("sequential"):
        list(execute(study.plan("smoke"), tmp_path / "whole"))
    assert len(numbers(study, tmp_path / "whole")) == 2
    assert numbers(study, tmp_path / "runs") == numbers(study, tmp_path / "whole")
