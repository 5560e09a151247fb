"""The table of measures: its files, what importing one loads, its names, and the costs that measures state."""

import importlib
import math
import pkgutil
import subprocess
import sys

import pytest

import mnemoscope as ms
from mnemoscope import measures
from mnemoscope.core.errors import UserError
from mnemoscope.measures.registry import HOMES, LONGEST, Cost

PROMISED = [
    "fisher_memory",
    "matrix_fisher_memory",
    "queue_fisher_memory",
    "network_fisher_memory",
    "separation_rank",
    "odd_even_rank",
    "memory_capacity",
    "gradient_norms",
    "lyapunov_exponents",
    "spectrum",
    "resources",
]
"""Measures that DESIGN.md, section 5, promises."""


def modules() -> list[str]:
    return [each.name for each in pkgutil.walk_packages(measures.__path__, "mnemoscope.measures.")]


def test_every_name_is_there_after_every_file_was_imported():
    """A file with the name of a function would hide it as soon as it is loaded."""
    code = (
        "import importlib, pkgutil, mnemoscope as ms\n"
        "for each in pkgutil.walk_packages(ms.measures.__path__, 'mnemoscope.measures.'): "
        "importlib.import_module(each.name)\n"
        f"names = {PROMISED!r} + [n for n in ms.measures.__all__ if n[0].islower()]\n"
        "assert all(callable(getattr(ms.measures, name)) for name in names), names\n"
        "import numpy as np\n"
        "assert ms.measures.fisher_memory(np.eye(2) / 2, [1, 0]).total > 0\n"
        "assert ms.measures.spectrum(np.eye(2) / 2).radius == 0.5\n"
        "assert ms.measures.memory_capacity((np.eye(1) / 2, [1.0])).total == 1\n"
        "assert ms.measures.resources(ms.nn.RNN(1, 2), lengths=(2, 3, 4), repeats=1).parameters > 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_file_or_folder_has_the_name_of_a_public_function():
    parts = {part for name in modules() for part in name.split(".")[2:]}
    assert not parts & set(measures.__all__)


def test_public_names_are_those_that_the_files_export():
    for file, public in measures._FILES.items():
        module = importlib.import_module(f"mnemoscope.measures.{file}")
        assert sorted(module.__all__) == sorted(public), file
    assert dir(measures) == sorted(measures.__all__)
    assert set(PROMISED) <= set(dir(measures))


def test_the_table_names_the_file_of_every_measure():
    for name in modules():
        importlib.import_module(name)
    homes = {name: f"mnemoscope.measures.{home}" for name, home in HOMES.items()}
    own = {name: entry for name, entry in measures.MEASURES._entries.items() if name in homes}
    assert {name: entry.function.__module__ for name, entry in own.items()} == homes
    registered = {name for name, e in measures.MEASURES._entries.items() if "mnemoscope" in e.function.__module__}
    assert registered == set(homes)


@pytest.mark.parametrize(
    "name", ["fisher_memory", "network_fisher_memory", "gradient_norms", "spectrum", "odd_even_rank"]
)
def test_importing_one_measure_loads_little(name):
    code = (
        f"import sys; from mnemoscope.measures import {name}; "
        "print(sum(m.split('.')[0] == 'mnemoscope' for m in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 60


def test_unknown_names_are_said():
    with pytest.raises(AttributeError, match="module 'mnemoscope.measures' has no attribute 'fisher_memry'"):
        _ = measures.fisher_memry
    with pytest.raises(UserError, match="there is no measure named 'fischer'; did you mean 'fisher'"):
        measures.get("fischer")


# Costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOMES)
def test_every_measure_states_its_cost(name):
    cost = measures.get(name).cost
    assert cost is not None
    assert str(cost).startswith(f"O({next(iter(cost.time))}) time, O({cost.memory}) memory; ")


@pytest.mark.parametrize(
    ("name", "argument", "stated", "by_size", "by_steps"),
    [
        ("network-fisher", "horizon", "S^2 M", 2, 1),  # in a Krylov space of M directions
        ("lyapunov", "horizon", "S^2 M", 3, 1),  # M exponents: S, unless fewer are asked for
        ("gradients", "horizon", "S^2", 2, 1),
        ("spectrum", "horizon", "M^3", 2, 0),  # beyond M rows by bounds
        ("memory-capacity", "samples", "S^2", 2, 1),
    ],
)
def test_estimates_grow_as_stated(name, argument, stated, by_size, by_steps):
    """Where all sizes are large, doubling one multiplies the time by two to the power that the cost names."""
    entry = measures.get(name)
    assert set(stated.split()) <= set(next(iter(entry.cost.time)).split())

    def seconds(size, steps):
        return entry.seconds(size, **{argument: steps})

    assert math.log2(seconds(2**15, 2**21) / seconds(2**14, 2**21)) == pytest.approx(by_size, abs=0.05)
    assert math.log2(seconds(2**14, 2**22) / seconds(2**14, 2**21)) == pytest.approx(by_steps, abs=0.05)


def test_defaults_of_a_measure_count():
    entry = measures.get("network-fisher")
    assert entry.seconds(64) == entry.seconds(64, longest=1000, trajectories=8)
    assert entry.seconds(64, horizon=10) < entry.seconds(64)


def test_a_cost_is_its_own_formula():
    cost = Cost(time={"K^T S": 2.0, "S^3 log(T)": 1.0}, memory="K^T", letters={"K": "templates"})
    assert cost.seconds({"K": 3, "T": 4, "S": 5}) == 2 * 81 * 5 + 125 * 2
    assert str(cost) == "O(K^T S) time, O(K^T) memory; K templates, S numbers in a state, T steps"


@pytest.mark.parametrize("function", ["network_fisher_memory", "lyapunov_exponents"])
def test_what_would_not_end_is_refused_with_the_reason(function, monkeypatch):
    monkeypatch.setattr("mnemoscope.measures.registry.LONGEST", 1e-6)
    layer = ms.nn.create("gru", input_size=2, hidden_size=8)
    with pytest.raises(
        UserError, match=r"would take about \d+ hours for S = 8, .* grows as B T S\^(3|2 M); fewer steps"
    ):
        getattr(ms.measures, function)(layer, horizon=50, trajectories=4)


def test_what_ends_is_not_refused():
    Cost(time={"T": 1.0}, memory="T").require_end("x", T=LONGEST)
    with pytest.raises(UserError, match="x would take about 7 hours for T = 25200"):
        Cost(time={"T": 1.0}, memory="T").require_end("x", T=7 * 3600)
