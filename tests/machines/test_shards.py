"""Shards: whatever order, kills and repetitions, put together they are the whole, bit for bit."""

import json
import os
import random
import re
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.machines.small import do_shard, ended, in_child, killed, numbers, small_study

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.machines import Shard, split
from mnemoscope.machines.merging import merge
from mnemoscope.studies.machinery import Share, collected, execute


@given(st.integers(0, 200), st.integers(1, 70))
def test_shards_are_a_split(items, of):
    shares = [split(range(items), Shard(of, number)) for number in range(1, of + 1)]
    assert sorted(one for share in shares for one in share) == list(range(items))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "-1/4", "a/b", "1/2/3", "1.5/2"])
def test_what_is_no_shard(text):
    with pytest.raises(UserError, match="a shard must be K/N with K from 1 to N, as in 3/64, got"):
        Shard.parse(text)


def shards_with_kills(tmp_path, study, order, kills, again, seed=0):
    draw = random.Random(seed)
    whole = tmp_path / "whole"
    begin = time.monotonic()
    list(execute(study.plan("smoke"), whole))
    took = (time.monotonic() - begin) / len(order)
    for text in order:
        if text in kills:
            killed(draw.uniform(0, took), do_shard, study, text, tmp_path / "shards")
        for _ in range(2 if text in again else 1):
            assert ended(in_child(do_shard, study, text, tmp_path / "shards")) == 0
    merged = merge([tmp_path / "shards"], tmp_path / "merged")
    assert (merged.missing, merged.differing, merged.busy) == ([], [], [])
    assert len(numbers(study, whole)) == len(study.plan("smoke"))
    assert numbers(study, tmp_path / "merged") == numbers(study, whole)
    assert not list((tmp_path / "shards" / "work").iterdir())


def test_eight_shards_in_any_order_two_killed_one_twice(tmp_path):
    order = [f"{number}/8" for number in range(1, 9)]
    random.Random(3).shuffle(order)
    shards_with_kills(tmp_path, small_study(), order, kills=order[2:4], again=order[5:6])


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_seventy_kills(tmp_path):
    study, place = small_study(iterations=60), tmp_path / "shards"
    draw = random.Random(11)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    kills = 0
    while kills < 70:
        place = tmp_path / f"shards-{kills}"
        for number in range(1, 9):
            while kills < 70 and killed(draw.uniform(0, 0.6), do_shard, study, f"{number}/8", place) < 0:
                kills += 1
            assert ended(in_child(do_shard, study, f"{number}/8", place)) == 0
        merge([place], tmp_path / f"merged-{kills}")
        assert numbers(study, tmp_path / f"merged-{kills}") == numbers(study, tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_keeps_a_checkpoint_and_ends_in_time(tmp_path, number):
    study = small_study(1, iterations=600, checkpoint_every=None, seeds=[0, 1], layout="batched")
    place = tmp_path / "shards"
    child = in_child(do_shard, study, "1/1", place)
    group = next(iter(study.plan("smoke"))).key
    folder = place / "work" / "small.smoke.shard-1-of-1" / f"study-{group}" / "population" / "group-000"
    while not runs.is_run(folder):
        time.sleep(0.01)
    time.sleep(0.1)
    begin = time.monotonic()
    for one in (number, signal.SIGTERM):  # as Slurm tells all processes of a job, and its script the program
        os.kill(child, one)
        time.sleep(0.001)
    assert ended(child) == 1
    assert time.monotonic() - begin < 30
    record = runs.load(folder)
    assert (record.status, record.reason) == ("budget", "it was asked to stop")
    assert 0 < record.latest().step < 600
    assert ended(in_child(do_shard, study, "1/1", place)) == 0
    merge([place], tmp_path / "merged")
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    assert numbers(study, tmp_path / "merged") == numbers(study, tmp_path / "whole")


def test_work_that_does_not_look_is_broken_off(tmp_path):
    from mnemoscope.machines import Stopped, stops_on_signals

    def work():
        try:
            with stops_on_signals(grace=0.1):
                time.sleep(30)
        except Stopped:
            return True

    begin = time.monotonic()
    assert killed(0.1, work, number=signal.SIGTERM) == 0
    assert time.monotonic() - begin < 15


def test_a_store_by_its_url(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    study = small_study(3, iterations=3)
    place = f"memory://{tmp_path.name}/shards"
    assert do_shard(study, "1/2", place)
    with pytest.raises(UserError, match=r"lacks 2/2 \(1 of 1 runs, not begun\)"):
        merge([place], tmp_path / "merged")
    assert do_shard(study, "2/2", place)
    assert len(merge([place], tmp_path / "merged").added) == 3
    assert len(collected(study.plan("smoke"), tmp_path / "merged")) == 3
    assert not list(tmp_path.rglob("*.zip"))


def test_a_full_store_is_one_line_and_loses_nothing(tmp_path, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    study, place = small_study(1, iterations=2), f"memory://{tmp_path.name}/full"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "pipe_file", full)
        with pytest.raises(UserError, match=r"^'memory://.*' cannot be written: \[Errno 28\] No space left on device$"):
            do_shard(study, "1/1", place)
    assert do_shard(study, "1/1", place)


@pytest.mark.parametrize(
    ("place", "words"),
    [("nosuch://x/y", "must be a folder or the URL of a store"), ("", "a folder must have a name")],
)
def test_what_is_no_store(place, words):
    with pytest.raises(UserError, match=words):
        Share("small", "smoke", [], Shard(1, 1), place)


def test_a_manifest_says_what_the_whole_is(tmp_path):
    study = small_study(4, iterations=2)
    do_shard(study, "2/3", tmp_path)
    (file,) = tmp_path.glob("*.json")
    assert re.fullmatch(r"small\.smoke\.[0-9a-f]{8}\.shard-2-of-3\.json", file.name)
    found = json.loads(file.read_text())
    assert found["plan"] == [f"study-{spec.key}" for spec in study.plan("smoke")]
    before = file.read_bytes()
    do_shard(study, "2/3", tmp_path)
    assert file.read_bytes() == before
