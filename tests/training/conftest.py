"""Data for tasks that read files."""

import pytest
from tests.tasks.fake_data import write_data


@pytest.fixture(scope="session")
def arena(tmp_path_factory):
    """A folder with small files in the formats of the real ones."""
    return str(write_data(tmp_path_factory.mktemp("arena")))
