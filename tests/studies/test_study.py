"""Studies: every run once, kept, shared, taken up again; verdicts that follow from the numbers."""

from pathlib import Path

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.report import render
from mnemoscope.studies import EXECUTORS, SCALES, STUDIES, VERDICTS, Outcome, RunSpec, collected, execute, planned
from mnemoscope.studies.depth_fig_6 import DepthFig6
from mnemoscope.studies.page import study_page
from mnemoscope.studies.ziv_theorem_1 import ZivTheorem1, measure_rank
from mnemoscope.theory import depth_two_rank

CALLS: list[int] = []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch):
    """A kind of run that counts how often it is executed, and fails on request."""
    CALLS.clear()

    def run(settings, folder: Path):
        if settings["number"] == 13:
            raise UserError("thirteen is not possible")
        CALLS.append(settings["number"])
        return {"square": settings["number"] ** 2}

    monkeypatch.setitem(EXECUTORS._entries, "counted", run)
    return lambda *numbers: [RunSpec("counted", {"number": number}) for number in numbers]


def test_runs_are_kept_and_shared(tmp_path: Path, counted) -> None:
    first = list(execute(counted(1, 2), tmp_path))
    again = list(execute(counted(2, 1, 3), tmp_path))
    assert CALLS == [1, 2, 3]
    assert [outcome.summary["square"] for outcome in first] == [1, 4]
    assert [outcome.summary["square"] for outcome in again] == [4, 1, 9]
    assert again[0].seconds == pytest.approx(first[1].seconds, abs=1e-3)


def test_collecting_runs_nothing(tmp_path: Path, counted) -> None:
    list(execute(counted(1), tmp_path))
    assert [outcome.summary["square"] for outcome in collected(counted(1, 5), tmp_path)] == [1]
    assert CALLS == [1]


def test_failure_is_recorded_and_loses_nothing(tmp_path: Path, counted) -> None:
    found = execute(counted(1, 13, 2), tmp_path)
    assert next(found).summary["square"] == 1
    with pytest.raises(UserError, match="thirteen"):
        next(found)
    assert len(collected(counted(1, 13, 2), tmp_path)) == 1
    assert [outcome.summary["square"] for outcome in execute(counted(1, 2), tmp_path)] == [1, 4]


def test_budget_begins_no_new_run(tmp_path: Path, counted, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**6, 100))
    monkeypatch.setattr("mnemoscope.studies.execution.time.monotonic", lambda: next(now))
    assert len(list(execute(counted(1, 2, 3), tmp_path, minutes=3))) == 1
    assert CALLS == [1]


def test_key_is_of_the_content() -> None:
    assert RunSpec("a", {"x": 1, "y": 2}).key == RunSpec("a", {"y": 2, "x": 1}).key
    assert RunSpec("a", {"x": 1}).key != RunSpec("b", {"x": 1}).key


@pytest.mark.parametrize("name", STUDIES.names())
def test_plans(name: str) -> None:
    study = STUDIES[name]()
    sizes = [len(planned(study, scale)) for scale in SCALES]
    assert 0 < sizes[0] <= sizes[1] <= sizes[2]
    for scale in SCALES:
        keys = [spec.key for spec in planned(study, scale)]
        assert len(set(keys)) == len(keys)
        assert all(spec.kind in EXECUTORS for spec in planned(study, scale))
    with pytest.raises(UserError, match="scale must be"):
        planned(study, "huge")


def test_ziv_smoke(tmp_path: Path) -> None:
    study = ZivTheorem1()
    outcomes = list(execute(planned(study, "smoke"), tmp_path))
    finding = study.analyse(outcomes, "smoke")
    assert finding.verdict == "reproduced"
    page = study_page(study, finding, outcomes, "smoke", 0)
    assert "reproduced" in render(page)


@pytest.mark.parametrize(("M", "R", "T"), [(2, 3, 4), (3, 2, 4), (3, 3, 4), (2, 4, 6)])
def test_ranks_of_the_executor(M: int, R: int, T: int, tmp_path: Path) -> None:
    for L, wanted in ((1, min(R, M ** (T // 2))), (2, depth_two_rank(M, R, T))):
        assert measure_rank({"M": M, "R": R, "T": T, "L": L, "seed": 0}, tmp_path)["rank"] == wanted


def test_ziv_says_so_when_a_bound_fails() -> None:
    study = ZivTheorem1()
    specs = planned(study, "smoke")
    low = [Outcome(spec, {"rank": 1, "exact": True, "float_rank": 1, "shape": [4, 4]}, 0.0) for spec in specs]
    finding = study.analyse(low, "smoke")
    assert finding.verdict == "not reproduced"
    assert finding.headlines[1].value != "0"


def test_ziv_remark_is_wrong_where_the_width_exceeds_the_channels() -> None:
    study = ZivTheorem1()
    specs = [spec for spec in planned(study, "laptop") if spec.settings["T"] == 4]
    outcomes = [Outcome(spec, {"rank": 9, "exact": True, "float_rank": 9, "shape": [16, 16]}, 0.0) for spec in specs]
    assert "published value wrong" in [part.verdict for part in study.analyse(outcomes, "laptop").parts]


def _depth_outcomes(solved_at: dict[int, int], scale: str) -> list[Outcome]:
    study = DepthFig6()
    found = []
    for spec in planned(study, scale):
        width, depth = spec.settings["hidden_size"], spec.settings["num_layers"]
        error = 1e-4 if width >= solved_at[depth] else 0.5
        found.append(Outcome(spec, {"test_loss": [error, error * 1.1, error * 0.9]}, 1.0))
    return found


def test_depth_verdicts_follow_from_the_errors() -> None:
    study = DepthFig6()
    exact = study.analyse(_depth_outcomes({1: 45, 2: 25, 4: 15, 8: 10}, "laptop"), "laptop")
    assert [part.verdict for part in exact.parts] == ["trend reproduced at smaller scale"] * 3 + ["reproduced"]
    flat = study.analyse(_depth_outcomes({1: 45, 2: 45, 4: 45, 8: 45}, "laptop"), "laptop")
    assert flat.parts[0].verdict == "not reproduced"
    impossible = study.analyse(_depth_outcomes({1: 20, 2: 15, 4: 10, 8: 5}, "laptop"), "laptop")
    assert impossible.parts[3].verdict == "not reproduced"
    unsolved = study.analyse(_depth_outcomes({1: 999, 2: 25, 4: 15, 8: 10}, "laptop"), "laptop")
    assert unsolved.parts[0].verdict == "not reproduced"
    assert "none at depth 1" in unsolved.parts[0].measured


def test_depth_page_draws_three_panels_with_the_thresholds() -> None:
    study = DepthFig6()
    outcomes = _depth_outcomes({1: 45, 2: 25, 4: 15, 8: 10}, "laptop")
    page = study_page(study, study.analyse(outcomes, "laptop"), outcomes, "laptop", 3)
    figures = [figure for section in page.sections for figure in section.figures]
    assert [len(figure.drawing.marks) for figure in figures] == [4, 4, 4]
    assert [mark.value for mark in figures[0].drawing.marks] == [45, 25, 15, 10]
    assert [mark.value for mark in figures[1].drawing.marks] == [45, 50, 60, 80]
    assert "3 of 30 planned runs are missing" in page.absent[0][1]
    assert "L = 8" in render(page)


def test_verdicts_are_those_of_the_contract() -> None:
    assert VERDICTS == (
        "reproduced",
        "trend reproduced at smaller scale",
        "not reproduced",
        "published value wrong",
    )
