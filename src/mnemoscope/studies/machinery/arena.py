"""Networks and settings of the Long Range Arena, as Table 2 and appendix B.4 of Depth have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mnemoscope.tasks.datasets import is_there

__all__ = ["CONFIGURATIONS", "DEPTHS", "Configuration", "arena_data", "network"]


class Configuration(NamedTuple):
    """A column of Tables 1 and 2: task, N, width by depth, parameters, training (appendix B.4), accuracy by depth."""

    task: str
    order: int
    widths: dict[int, int]
    parameters: float
    rate: float
    batch: int
    epochs: int
    dropout: float
    published: tuple[float, float, float, float]


DEPTHS = (2, 3, 6, 8)
_NARROW = {2: 446, 3: 364, 6: 256, 8: 221}
CONFIGURATIONS = {
    "Pathfinder": Configuration("pathfinder", 64, {2: 484, 3: 385, 6: 256, 8: 220}, 1.3e6, 4e-3, 64, 200, 0.0,
                                (0.8534, 0.9328, 0.9619, 0.9673)),
    "Images": Configuration("scifar", 64, {2: 922, 3: 745, 6: 512, 8: 440}, 3.6e6, 0.01, 50, 200, 0.1,
                            (0.8581, 0.8765, 0.8980, 0.8913)),
    "ListOps": Configuration("listops", 4, _NARROW, 808e3, 0.01, 32, 40, 0.0, (0.5806, 0.6154, 0.6159, 0.6154)),
    "Retrieval": Configuration("retrieval", 4, _NARROW, 808e3, 0.01, 64, 20, 0.0, (0.9139, 0.9170, 0.9099, 0.9118)),
}  # fmt: skip


def network(name: str, depth: int, width: int | None = None, order: int | None = None) -> dict[str, Any]:
    """Return the network of a column as settings of a run: as published, where no width and order are given."""
    own = CONFIGURATIONS[name]
    n = own.widths[depth] if width is None else width
    options = {"order": order or own.order, "bidirectional": True, "block": True, "dropout": own.dropout}
    options |= {"groups": n} if name == "Pathfinder" else {}  # only so are there 1.3 million
    embedded = {"input_size": n} if name in ("ListOps", "Retrieval") else {}
    return {"network": "s4", "hidden_size": n, "num_layers": depth, "options": options, **embedded}


def arena_data(task: str, scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task that is generated, or whose files are there; else digits for photographs, or drawn files."""
    dataset = {"scifar": "cifar10", "retrieval": "aan"}.get(task)
    if dataset is None or (not scale.get("stand_in") and is_there(dataset)):
        return {"task": task}
    if task == "scifar" and not scale.get("stand_in") and is_there("mnist"):
        return {"task": "smnist"}
    return {"task": task, "stand_in": True}
