"""What the tests of many machines share."""

import pytest


@pytest.fixture(autouse=True)
def _no_power_loss(monkeypatch):
    """Leave out fsync: it guards against the loss of power, which no test here simulates, and takes most time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def contents():
    """Return what is in a folder: every file with its bytes, except lock files and the index."""

    def read(folder):
        files = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
        return {str(one.relative_to(folder)): one.read_bytes() for one in files if "index.sqlite" not in one.name}

    return read
