"""What the tests of the record share."""

import pytest

SPEC = {"task": "copy", "network": "nnrnn", "seed": 3, "lr": 0.1}


@pytest.fixture
def spec():
    """A configuration."""
    return dict(SPEC)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder that is the runs' root."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(folder))
    return folder


@pytest.fixture
def contents():
    """Return what is in a folder: every file with its bytes, except lock files and the index."""

    def read(folder):
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(one.relative_to(folder)): one.read_bytes() for one in files if "lock" not in one.name}

    return read


@pytest.fixture(autouse=True)
def _no_power_loss(monkeypatch):
    """Leave out fsync: it guards against the loss of power, which no test here simulates, and takes most time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
