"""Table 2 of Depth: networks of the Long Range Arena with the published number of parameters."""

import pytest
import torch

from mnemoscope import nn
from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery.arena import CONFIGURATIONS, DEPTHS, network

PRINTED = {
    "Retrieval": ("808k", "810k", "808k", "806k"),
    "ListOps": ("808k", "810k", "808k", "806k"),
    "Images": ("3.6M", "3.6M", "3.6M", "3.6M"),
    "Pathfinder": ("1.3M", "1.3M", "1.3M", "1.3M"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_published_counts(name, depth):
    """Counted as the release of S4 has its layers, every number of Table 2 comes out to its last digit.

    A layer of the release, without encoder and decoder: GLU 2 H^2 + 2 H, norm 2 H, Delta and D one each for both
    directions, C for either, and G sets of A, P and B. Ours have Delta and D for either direction too, and count what
    brings a pixel to H features: 2 H a layer more, and 2 H once.
    """
    given = network(name, depth)
    with torch.device("meta"):
        layer = nn.create(
            given["network"],
            input_size=given.get("input_size", 1),
            hidden_size=given["hidden_size"],
            num_layers=depth,
            device="meta",
            **given["options"],
        )
    h, n = given["hidden_size"], given["options"]["order"]
    release = depth * (2 * h**2 + 6 * h + 2 * h * n + 3 * layer.groups * n)
    shown = f"{round(release / 1e3)}k" if release < 1e6 else f"{release / 1e6:.1f}M"
    assert shown == PRINTED[name][DEPTHS.index(depth)]
    projected = 2 * h if "input_size" not in given else 0
    assert sum(parameter.numel() for parameter in layer.parameters()) == release + 2 * h * depth + projected


def test_paper_scale_is_the_published_table():
    plan = STUDIES["depth-table-1"].plan("paper")
    assert len(plan) == 16
    tasks = {spec.settings["task"]: spec.settings for spec in plan}
    assert set(tasks) == {"listops", "pathfinder", "scifar", "retrieval"}
    found = {task: [own[key] for key in ("lr", "batch_size", "epochs")] for task, own in tasks.items()}
    assert found == {
        "listops": [0.01, 32, 40],
        "retrieval": [0.01, 64, 20],
        "scifar": [0.01, 50, 200],
        "pathfinder": [0.004, 64, 200],
    }
    assert tasks["scifar"]["options"]["dropout"] == 0.1
