"""What holds for every test: one thread, a seed, quiet hypothesis."""

import hypothesis
import numpy as np  # noqa: F401 - its BLAS must be there to be limited
import pytest
import torch
from threadpoolctl import threadpool_limits

# xdist runs one worker per core; more threads within a worker only get in each other's way.
torch.set_num_threads(1)
threadpool_limits(1)

# A test that is slow on a loaded machine is not wrong, and the same commit gives the same result.
hypothesis.settings.register_profile("mnemoscope", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mnemoscope")


@pytest.fixture(autouse=True)
def _seeded():
    """Seed torch, so that a test means the same alone, in any order and on any worker."""
    torch.manual_seed(0)
