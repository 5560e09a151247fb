"""Commit of a folder: read from the files of .git, and nothing is run for it."""

import os
import subprocess

import pytest

from mnemoscope.core import environment as module

HEAD = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch):
    """Fail when a process is started, and forget what was read before."""

    def started(*arguments, **options):
        raise AssertionError(f"started {arguments}")

    monkeypatch.setattr(subprocess.Popen, "__init__", started)
    monkeypatch.setattr(os, "system", started)
    module._commit.cache_clear()


def commit(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return module.environment()["commit"]["here"]


def test_a_commit_is_read_from_a_reference(tmp_path, monkeypatch):
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/refs/heads/main").write_text(f"{HEAD}\n")
    (tmp_path / ".git/config").write_text("[core]\n\tfsmonitor = touch /tmp/run-by-git\n")
    (tmp_path / "below").mkdir()
    assert commit(tmp_path / "below", monkeypatch) == HEAD


def test_a_commit_is_read_from_the_packed_references(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/packed-refs").write_text(f"# pack-refs\n{'f' * 40} refs/heads/not-main\n{HEAD} refs/heads/main\n")
    assert commit(tmp_path, monkeypatch) == HEAD


def test_a_commit_is_read_in_a_linked_work_tree(tmp_path, monkeypatch):
    own = tmp_path / "main/.git/worktrees/side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "main/.git/refs/heads").mkdir(parents=True)
    (tmp_path / "main/.git/refs/heads/side").write_text(f"{HEAD}\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side/.git").write_text(f"gitdir: {own}\n")
    assert commit(tmp_path / "side", monkeypatch) == HEAD


@pytest.mark.parametrize(
    "head", ["", "junk", "ref: refs/heads/none", "ref: ../../secret", "ref: HEAD", f"{HEAD}0", "ref: refs/heads/loop"]
)
def test_a_repository_without_a_commit_has_none(tmp_path, monkeypatch, head):
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text(head)
    (tmp_path / ".git/refs/heads/loop").write_text("ref: refs/heads/loop")
    assert commit(tmp_path, monkeypatch) is None


def test_a_pipe_in_place_of_a_head_does_not_hang(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git/HEAD")
    assert commit(tmp_path, monkeypatch) is None
