"""A Ray cluster: the numbers of one machine, bit for bit, whatever dies; what is wrong with it in one line."""

import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from unittest.mock import MagicMock

import pytest
from tests.machines.small import numbers, small_study
from tests.training.test_population import compare, group_of

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.machines import cluster, joining
from mnemoscope.studies.machinery import execute
from mnemoscope.training.groups import member_bytes

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")


@pytest.fixture
def workers(tmp_path):
    """Workers of a new cluster of one node."""
    with cluster.RayWorkers("local", folder=tmp_path) as found:
        yield found


@pytest.fixture
def two_nodes(monkeypatch):
    """A cluster of two nodes on this machine, of one core each; the second can be killed."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    ray.init(address=found.address, log_to_driver=False)  # now: the process that drives is then on the first
    found.second = found.add_node(num_cpus=1)
    found.wait_for_nodes()
    yield found
    ray.shutdown()
    found.shutdown()


def test_a_study_and_a_population_on_a_cluster(workers, tmp_path):
    study = small_study(3, iterations=5)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    done = list(execute(study.plan("smoke"), tmp_path / "many", workers=workers))
    assert len(done) == 3
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")
    settings = {"iterations": 6, "batch_size": 4, "lr": 0.01, "test_size": 8, "seeds": [0, 1]}
    here = ms.training.fit_population(ms.nn.RNN(10, 4), "copy", layout="sequential", **settings)
    there = ms.training.fit_population(
        ms.nn.RNN(10, 4), "copy", layout="processes", folder=tmp_path / "population", workers=workers, **settings
    )
    for one, other in zip(here, there, strict=True):
        assert (one.score, list(one.metrics)) == (other.score, list(other.metrics))
    with pytest.raises(UserError, match="there is no network named 'nonsense'"):
        list(execute(small_study(1, network="nonsense").plan("smoke"), tmp_path / "many", workers=workers))
    with pytest.raises(UserError, match="folder must be given for a population on other machines"):
        ms.training.fit_population(ms.nn.RNN(10, 4), "copy", workers=workers, **settings)


@pytest.mark.heavy
def test_as_many_networks_to_a_worker_as_its_memory_holds(workers, tmp_path):
    settings = {"iterations": 6, "batch_size": 4, "lr": 0.01, "test_size": 8, "seeds": [0, 1, 2, 3, 4]}
    alone = ms.training.fit_population(ms.nn.RNN(10, 4), "copy", layout="sequential", **settings)
    task = ms.tasks.create("copy")
    workers.memory = 2.5 * member_bytes(group_of([ms.nn.RNN(10, 4)], task))
    home = tmp_path / "population"
    found = ms.training.fit_population(
        ms.nn.RNN(10, 4), task, layout="batched-processes", folder=home, workers=workers, **settings
    )
    compare(found, alone, 1e-5)
    assert [runs.load(one).spec["members"] for one in sorted(home.glob("group-*"))] == [[0, 1], [2, 3], [4]]


@pytest.mark.heavy
def test_rows_of_the_atlas(workers, tmp_path):
    from mnemoscope.profiles.atlas import build, load

    for name, given in (("here", None), ("there", workers)):
        build(tmp_path / name, ["rnn", "lstm"], [100], quick=True, workers=given)
    here, there = (load(tmp_path / name).rows for name in ("here", "there"))
    assert [row.label for row in here] == [row.label for row in there] == ["lstm", "rnn"]
    for one, other in zip(here, there, strict=True):
        assert one.settings == other.settings
        for name in ("spectrum", "fisher", "gradients"):
            assert one.sections[name].to_dict() == other.sections[name].to_dict()


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_node_that_is_killed_in_the_middle_loses_nothing(two_nodes, tmp_path):
    study = small_study(8, iterations=400)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    with cluster.RayWorkers(two_nodes.address, folder=tmp_path) as workers:
        assert workers.count == 2
        done = []
        for outcome in execute(study.plan("smoke"), tmp_path / "many", workers=workers):
            done.append(outcome)
            if len(done) == 2:
                two_nodes.remove_node(two_nodes.second, allow_graceful=False)
    assert len(done) == 8
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_the_driver_alone_writes_the_index(workers, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "many"))
    noted = []
    monkeypatch.setattr("mnemoscope.studies.machinery.execution.note", lambda base, folder: noted.append(folder.name))
    study = small_study(3, iterations=5)
    list(execute(study.plan("smoke"), tmp_path / "many", workers=workers))
    assert len(noted) == 3
    assert not (tmp_path / "many" / "index.sqlite").exists()
    assert len([row for row in runs.index(tmp_path / "many") if row["parent"] is None]) == 3


COMMAND = """
import sys; sys.argv[0] = 'mnemoscope'; from mnemoscope.cli.main import app; app()
"""


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_that_is_stopped_goes_on(tmp_path, number):
    def start():
        arguments = ["study", "run", "depth-fig-6", "--scale", "smoke", "--ray", "local", "--layout", "sequential"]
        command = [sys.executable, "-c", COMMAND, *arguments, "--runs", str(tmp_path / "many")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    process = start()
    while not list(tmp_path.glob("many/study-*/population/group-000")):
        time.sleep(0.05)
        assert process.poll() is None, process.stderr.read()
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "interrupted after" in said
    assert said.rstrip().endswith("runs; the same command goes on")
    process = start()
    out, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert "smoke scale" in out
    study = ms.studies.STUDIES["depth-fig-6"]
    with ms.training.populations.usual_layout("sequential"):
        list(execute(study.plan("smoke"), tmp_path / "whole"))
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")


@pytest.mark.heavy
@pytest.mark.timeout(3000)
def test_sixty_kills(workers, tmp_path):
    study = small_study(40, iterations=200)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    workers.retries = 1000
    draw, kills = random.Random(5), 0
    while kills < 60:
        home = tmp_path / f"many-{kills}"
        ended = threading.Event()
        found = []

        def kill(home=home, ended=ended, found=found):
            while not ended.wait(draw.uniform(0.3, 3.0)):
                held = [one for lock in home.glob("study-*/lock") if (one := runs.lock.holder(lock))]
                if held:
                    os.kill(int(held[0].split()[1]), signal.SIGKILL)
                    found.append(held[0])

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            assert len(list(execute(study.plan("smoke"), home, workers=workers))) == 40
        finally:
            ended.set()
            killer.join()
        kills += len(found)
        assert found
        assert numbers(study, home) == numbers(study, tmp_path / "whole")


# What is wrong, in one line ---------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:6379"])
def test_nobody_answers(address):
    with pytest.raises(UserError, match="no Ray cluster answers at .*: start one there by `ray start --head`") as error:
        cluster.RayWorkers(address)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("address", ["localhost", "10.0.0.1", ":6379", "head:port"])
def test_what_is_no_address(address):
    with pytest.raises(UserError, match="the address of a Ray cluster must be HOST:PORT, auto or local, got"):
        cluster.RayWorkers(address)


def test_versions_of_ray_that_differ_are_named_with_both():
    class Other:
        def init(self, **_):
            raise RuntimeError(
                "Version mismatch: The cluster was started with:\n  Ray: 2.9.0\nThis process: Ray: 2.60.0"
            )

    with pytest.raises(UserError) as error:
        joining.join(Other(), "auto")
    assert str(error.value) == (
        "the Ray cluster at 'auto' has other versions: Version mismatch: The cluster was started with: Ray: 2.9.0 "
        "This process: Ray: 2.60.0"
    )


@pytest.mark.heavy
def test_nodes_of_other_versions_are_named_with_both(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_versions", lambda: {"mnemoscope": "9.9.9"})
    with pytest.raises(UserError, match=r"mnemoscope 9\.9\.9 here and \d+\.\d+\.\d+ there"):
        cluster.RayWorkers("local")
    assert not ray.is_initialized()


@pytest.mark.heavy
def test_a_node_without_the_data_or_the_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"has no data folder '.*nowhere' \(MNEMOSCOPE_DATA\): share or copy it"):
        cluster.RayWorkers("local", folder=tmp_path)
    monkeypatch.delenv("MNEMOSCOPE_DATA")

    @cluster.contextlib.contextmanager
    def elsewhere(folder):
        yield tmp_path / "not seen"

    monkeypatch.setattr(cluster, "_seen_by_all", elsewhere)
    with pytest.raises(UserError, match="does not see the folder of the runs"):
        cluster.RayWorkers("local", folder=tmp_path)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ray.exceptions.ObjectStoreFullError("no room\nfor 10 bytes"), "the Ray cluster failed: no room for 10 bytes"),
        (ray.exceptions.OutOfDiskError("/tmp/ray is full"), "the Ray cluster failed: /tmp/ray is full"),
        (ray.exceptions.RaySystemError("lost"), "the Ray cluster failed: System error: lost"),
        (ray.exceptions.OutOfMemoryError("9 GB"), "a worker of the Ray cluster died 4 times at the same work: 9 GB"),
    ],
)
@pytest.mark.parametrize("when", ["remote", "wait", "get"])
def test_what_a_cluster_cannot_do_is_one_line(monkeypatch, error, words, when):
    """A full store and a lost head are told at any of the three calls that wait for the cluster."""
    stub = MagicMock(exceptions=ray.exceptions)
    stub.wait.side_effect = error if when == "wait" else lambda given, **_: (given, [])
    stub.get.side_effect = error
    monkeypatch.setattr(cluster, "_here", lambda _: None)
    workers = object.__new__(cluster.RayWorkers)
    workers.threads, workers.retries, workers.count, workers.memory, workers._ray = 1, 3, 1, math.inf, stub
    session = cluster._Session(workers, "no:work", [{}], math.inf)
    session.task.remote.side_effect = error if when == "remote" else None
    with pytest.raises(MnemoscopeError) as caught:
        list(session.answers(lambda *_: None))
    line = str(caught.value)
    assert line.startswith(words)
    assert line.endswith("; what was done is kept where it is recorded")
    assert "\n" not in line


def test_a_token_that_is_missing_is_said():
    class Asking:
        def init(self, **_):
            os.write(2, b"gcs_client.cc: RPC error: InvalidAuthToken: Authentication token is missing or incorrect\n")
            raise ConnectionError("Failed to connect to Ray cluster at here")

    with pytest.raises(UserError, match=r"at 'auto' asks for a token that is missing or another one here: .*RAY_AUTH"):
        joining.join(Asking(), "auto")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'mnemoscope\[ray\]'"):
        cluster.RayWorkers("local")
