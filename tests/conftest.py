"""What holds for every test: one thread, a seed, quiet hypothesis."""

import signal

import hypothesis
import numpy as np  # noqa: F401 - its BLAS must be there to be limited
import pytest
import torch
from threadpoolctl import threadpool_limits

# xdist runs one worker per core; more threads within a worker only get in each other's way.
torch.set_num_threads(1)
threadpool_limits(1)

# Of a shell's background jobs, which ignore it, processes that tests interrupt would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that is slow on a loaded machine is not wrong, and the same commit gives the same result.
hypothesis.settings.register_profile("mnemoscope", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mnemoscope")


@pytest.fixture
def every():
    """Return a function that checks all of several named cases and raises what failed, each under its name."""

    def checked(cases, check):
        failed = []
        for name, case in cases.items():
            torch.manual_seed(0)
            try:
                check(case)
            except (Exception, pytest.fail.Exception) as error:
                failure = error if isinstance(error, Exception) else AssertionError(str(error))
                failure.add_note(f"of {name}")
                failed.append(failure)
        if failed:
            raise ExceptionGroup(f"{len(failed)} of {len(cases)} fail", failed)

    return checked


@pytest.fixture(autouse=True)
def _seeded():
    """Seed torch, so that a test means the same alone, in any order and on any worker."""
    torch.manual_seed(0)
