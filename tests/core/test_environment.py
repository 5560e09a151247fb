"""Environment of a computation: what is told of it, and what differs between two."""

import numpy as np
import torch

import mnemoscope
from mnemoscope.core.environment import differences, environment, environment_facts


def test_versions_are_those_of_the_loaded_packages():
    found = environment()
    told = {"mnemoscope": mnemoscope.__version__, "torch": torch.__version__, "numpy": np.__version__}
    assert found["versions"].items() >= told.items()
    assert environment_facts().items() >= told.items()
    assert found["threads"]["torch_threads"] == environment_facts()["threads"] == torch.get_num_threads()


def test_differences_are_those_that_change_numbers():
    before = environment()
    now = {
        **before,
        "versions": before["versions"] | {"torch": "9.9"},
        "machine": before["machine"] | {"host": "elsewhere"},
        "command": ["other"],
    }
    assert differences(before, now) == [f"torch: {torch.__version__} before, 9.9 now"]
