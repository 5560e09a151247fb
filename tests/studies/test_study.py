"""Studies: every run once, kept, shared, taken up again; verdicts that follow from the numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from mnemoscope import studies
from mnemoscope.core.errors import UserError
from mnemoscope.report import render
from mnemoscope.runs import OutOfBudget
from mnemoscope.studies import SCALES, STUDIES, VERDICTS, Outcome, RunSpec
from mnemoscope.studies.machinery import (
    EXECUTORS,
    NO_VERDICT,
    UNDECIDED,
    BarsOf,
    CurvesOf,
    First,
    HeatMapOf,
    Holds,
    Ordered,
    Ranked,
    TableOf,
    collected,
    draw_gallery,
    execute,
    facts_of,
    read_result,
    save_result,
    study_page,
)
from mnemoscope.studies.machinery.kinds import measure_rank
from mnemoscope.studies.machinery.ziv import early, limits
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
    assert (again[0].seconds, again[0].processor_seconds) == (first[1].seconds, first[1].processor_seconds)
    assert "of processor time" in facts_of(first)["runs"]
    assert "processor" not in facts_of([Outcome(first[0].spec, {}, 1.0)])["runs"]


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
    monkeypatch.setattr("mnemoscope.studies.machinery.execution.time.monotonic", lambda: next(now))
    assert len(list(execute(counted(1, 2, 3), tmp_path, minutes=3))) == 1
    assert CALLS == [1]


def test_key_is_of_the_content() -> None:
    assert RunSpec("a", {"x": 1, "y": 2}).key == RunSpec("a", {"y": 2, "x": 1}).key
    assert RunSpec("a", {"x": 1}).key != RunSpec("b", {"x": 1}).key
    assert RunSpec("a", {"x": 1}, "a look").key == RunSpec("a", {"x": 1}).key


def test_an_interrupted_run_counts_the_time_of_all_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**6, 100))
    monkeypatch.setattr("mnemoscope.studies.machinery.execution.time.monotonic", lambda: next(now))
    tries = []

    def run(settings, folder: Path):
        tries.append(settings)
        if len(tries) < 3:
            raise OutOfBudget("stopped")
        return {}

    monkeypatch.setitem(EXECUTORS._entries, "stopped", run)
    spec = RunSpec("stopped", {})
    assert list(execute([spec], tmp_path)) == list(execute([spec], tmp_path)) == []
    (outcome,) = execute([spec], tmp_path)
    assert (len(tries), outcome.seconds) == (3, 300)


@pytest.mark.parametrize("name", STUDIES.names())
def test_plans(name: str) -> None:
    study = STUDIES[name]
    assert study.name == name
    sizes = [len(study.plan(scale)) for scale in SCALES]
    assert 0 < sizes[0] <= sizes[1] <= sizes[2]
    for scale in SCALES:
        keys = [spec.key for spec in study.plan(scale)]
        assert len(set(keys)) == len(keys)
        assert all(spec.kind in EXECUTORS for spec in study.plan(scale))
        assert study.minutes[scale] > 0
    with pytest.raises(UserError, match="scale must be"):
        study.plan("huge")


def test_a_study_is_one_small_file() -> None:
    files = [path for path in Path(studies.__file__).parent.glob("*.py") if path.name != "__init__.py"]
    assert {path.stem.replace("_", "-") for path in files} == set(STUDIES.names())
    assert max(len(path.read_text().splitlines()) for path in files) < 120


@pytest.mark.parametrize("name", [name for name in STUDIES if not STUDIES[name].trained])
def test_smoke_scale_of_exact_studies_gives_a_page(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    outcomes = list(execute(study.plan("smoke"), tmp_path))
    finding = study.analyse(outcomes, "smoke")
    assert finding.verdict in VERDICTS
    assert finding.verdict in render(study_page(study, finding, "smoke", facts_of(outcomes)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].trained])
def test_smoke_scale_of_trained_studies_gives_a_page(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    if name == "kerg-table-b-1":
        pytest.importorskip("minigrid", reason="needs the extra mnemoscope[control]")
    study = STUDIES[name]
    outcomes = list(execute(study.plan("smoke"), tmp_path))
    finding = study.analyse(outcomes, "smoke")
    assert {part.verdict for part in finding.parts} == {NO_VERDICT}
    assert study.shortened("smoke") in render(study_page(study, finding, "smoke", facts_of(outcomes)))


@pytest.mark.parametrize(("M", "R", "T"), [(2, 3, 4), (3, 2, 4), (3, 3, 4), (2, 4, 6)])
def test_ranks_of_the_executor(M: int, R: int, T: int, tmp_path: Path) -> None:
    for L, wanted in ((1, min(R, M ** (T // 2))), (2, depth_two_rank(M, R, T))):
        assert measure_rank({"M": M, "R": R, "T": T, "L": L, "seed": 0}, tmp_path)["rank"] == wanted


def test_ziv_says_so_when_a_bound_fails() -> None:
    study = STUDIES["ziv-theorem-1"]
    summary = {"rank": 1, "exact": True, "float_rank": 1, "shape": [4, 4]}
    finding = study.analyse([Outcome(spec, summary, 0.0) for spec in study.plan("smoke")], "smoke")
    assert finding.verdict == "not reproduced"
    assert study.headlines(finding.rows)[1].value != "0"


def test_ziv_remark_is_wrong_where_the_width_exceeds_the_channels() -> None:
    study = STUDIES["ziv-theorem-1"]
    specs = [spec for spec in study.plan("laptop") if spec.settings["T"] == 4]
    outcomes = [Outcome(spec, {"rank": 9, "exact": True, "float_rank": 9, "shape": [16, 16]}, 0.0) for spec in specs]
    assert "published value wrong" in [part.verdict for part in study.analyse(outcomes, "laptop").parts]


def _depth_outcomes(solved_at: dict[int, int], scale: str) -> list[Outcome]:
    found = []
    for spec in STUDIES["depth-fig-6"].plan(scale):
        width, depth = spec.settings["hidden_size"], spec.settings["num_layers"]
        error = 1e-4 if width >= solved_at[depth] else 0.5
        found.append(Outcome(spec, {"test_loss": [error, error * 1.1, error * 0.9]}, 1.0))
    return found


def test_depth_verdicts_follow_from_the_errors() -> None:
    study = STUDIES["depth-fig-6"]
    exact = study.analyse(_depth_outcomes({1: 45, 2: 25, 4: 15, 8: 10}, "laptop"), "laptop")
    assert [part.verdict for part in exact.parts] == ["trend reproduced at smaller scale"] * 3 + ["reproduced"]
    flat = study.analyse(_depth_outcomes({1: 45, 2: 45, 4: 45, 8: 45}, "laptop"), "laptop")
    assert flat.parts[0].verdict == "not reproduced"
    impossible = study.analyse(_depth_outcomes({1: 20, 2: 15, 4: 10, 8: 5}, "laptop"), "laptop")
    assert impossible.parts[3].verdict == "not reproduced"
    unsolved = study.analyse(_depth_outcomes({1: 999, 2: 25, 4: 15, 8: 10}, "laptop"), "laptop")
    assert unsolved.parts[0].verdict == "not reproduced"
    assert "none at depth 1" in unsolved.parts[0].measured


def test_what_is_trained_has_no_verdict_at_smoke_scale() -> None:
    study = STUDIES["depth-fig-6"]
    finding = study.analyse(_depth_outcomes({1: 45, 2: 25, 4: 15, 8: 10}, "smoke"), "smoke")
    assert {part.verdict for part in finding.parts} == {NO_VERDICT}


def test_depth_page_draws_three_panels_with_the_thresholds_and_prints_the_rules() -> None:
    study = STUDIES["depth-fig-6"]
    finding = study.analyse(outcomes := _depth_outcomes({1: 45, 2: 25, 4: 15, 8: 10}, "laptop"), "laptop")
    page = study_page(study, finding, "laptop", facts_of(outcomes), missing=3)
    figures = [figure for section in page.sections for figure in section.figures]
    assert [len(figure.drawing.marks) for figure in figures] == [4, 4, 4]
    assert [mark.value for mark in figures[0].drawing.marks] == [45, 25, 15, 10]
    assert [mark.value for mark in figures[1].drawing.marks] == [45, 50, 60, 80]
    assert "3 planned runs are missing" in page.absent[0][1]
    text = render(page)
    assert "L = 8" in text
    assert "least width with a median error below 0.01 falls from each depth to the next" in text


ROWS = [{"net": net, "T": T, "score": [T + k, T + k + 1.0], "one": T / 2} for k, net in enumerate("ab") for T in (2, 4)]


def test_rules_are_data() -> None:
    rule = Holds(claim="c", left="one", relation="<=", right=2, where={"net": "a"})
    assert rule.judge(ROWS, "laptop").verdict == "reproduced"
    assert rule.words() == "one at most 2, in every case, where net is a; otherwise: not reproduced"
    apart = Holds(claim="c", left="one", relation="=", right="T", within=1.0, otherwise="published value wrong")
    found = apart.judge(ROWS, "laptop")
    assert (found.verdict, found.measured[:20]) == ("published value wrong", "held in 2 of 4 cases")
    assert Holds(claim="c", left="one", relation="<", right="T").judge([], "laptop").verdict == UNDECIDED
    trend = Holds(claim="c", left="one", relation="<", right="T", scaled=True)
    assert [trend.judge(ROWS, scale).verdict for scale in ("laptop", "paper")] == [VERDICTS[1], VERDICTS[0]]
    close = Holds(claim="c", left="one", relation=">=", right="T", within=2.0)
    assert close.judge(ROWS, "laptop").verdict == "reproduced"
    rising = Ordered(
        claim="c", column="T", by="net", groups=("a", "b"), direction="rises", success="score", threshold=9.0
    )
    assert rising.judge(ROWS, "paper").verdict == "not reproduced"


def test_one_group_is_first() -> None:
    own = {"claim": "c", "column": "T", "by": "net", "groups": ("a", "b"), "success": "one"}
    rows = [row for row in ROWS if row["net"] == "a" or row["T"] == 4]
    assert First(group="a", threshold=3, **own).judge(rows, "paper").verdict == "reproduced"
    assert First(group="b", threshold=3, **own).judge(rows, "paper").verdict == "not reproduced"
    assert First(group="a", threshold=0, **own).judge(rows, "paper").verdict == "not reproduced"
    assert "2 at net a, 4 at net b" in First(group="a", threshold=3, **own).judge(rows, "paper").measured
    assert First(group="a", threshold=3, **own).words() == "least T with a median one below 3 is that of net a, of a, b"


def test_groups_are_ranked_case_by_case() -> None:
    rule = Ranked(claim="c", column="score", by="net", groups=("a", "b"), cases=("T",))
    found = rule.judge(ROWS, "laptop")
    assert found.verdict == UNDECIDED  # seeds are as far apart as groups
    half = "(+1, 95% \N{MINUS SIGN}2.042 to 4.042)"  # t(0.975, 2) sqrt(1/2) about 1
    assert found.measured == f"mean score: 2.5 at a, 3.5 at b {half} in T = 2; 4.5 at a, 5.5 at b {half} in T = 4"
    said = "not decided by these seeds where the 95% interval of a difference does not say so either way"
    assert found.rule == f"mean score rises from a, b, in every case of T; {said}"
    assert rule.judge(ROWS[1:], "paper").measured == f"mean score: 4.5 at a, 5.5 at b {half} in T = 4"
    near = [{**row, "score": [row["score"][0], row["score"][0] + 0.01]} for row in ROWS]
    assert rule.judge(near, "laptop").verdict == "trend reproduced at smaller scale"
    assert [
        rule.judge([{**row, "score": one} for row in ROWS], "paper").verdict for one in ([1.0, 1.0], [1.0], 1.0)
    ] == [
        "not reproduced",
        UNDECIDED,
        UNDECIDED,
    ]
    assert "(+0, one seed)" in rule.judge([{**row, "score": 1.0} for row in ROWS], "paper").measured
    far = Ranked(claim="c", column="score", by="net", groups=("a", "b"), cases=("T",), margin=1.5)
    assert far.judge(near, "paper").verdict == "not reproduced"
    assert far.judge(ROWS, "paper").verdict == UNDECIDED
    none = [{**row, "score": None} for row in ROWS[:2]] + ROWS[2:]
    assert "none at a" in far.judge(none, "paper").measured
    assert far.judge(none, "paper").verdict == "reproduced"
    assert far.judge([{**row, "score": None} for row in ROWS], "paper").verdict == "not reproduced"
    falls = Ranked(claim="c", column="score", by="net", groups=("b", "a"), direction="falls", margin=-0.5, cases=("T",))
    assert [falls.judge(rows, "paper").verdict for rows in (near, ROWS)] == ["reproduced", UNDECIDED]
    assert rule.judge([{**row, "score": []} for row in ROWS], "paper").measured == "mean score: nothing measured"


def test_two_limits_at_the_most_that_was_tried_are_not_compared() -> None:
    rows = [{"L": L, "limits": [at] * 3, "ended": at == 50} for L, at in ((1, None), (2, 50), (3, 50))]
    rule = Ranked(claim="deeper copies longer", column="limits", by="L", groups=(1, 2, 3), ended="ended")
    assert rule.judge(rows, "laptop").verdict == "not decided by these seeds"
    assert replace(rule, ended="").judge(rows, "laptop").verdict == "not reproduced"
    assert replace(rule, groups=(1, 2)).judge(rows, "laptop").verdict == "trend reproduced at smaller scale"
    assert "the most that was tried" in rule.words()


def test_displays_read_columns() -> None:
    words = {"name": "n", "title": "t", "alt": "a", "how": "h", "x_title": "x", "y_title": "y"}
    curves = CurvesOf(x="T", y="score", by="net", **words).drawing(ROWS)
    assert [(one.entry, one.x, one.y) for one in curves.series] == [
        ("a", [2, 4], [2.5, 4.5]),
        ("b", [2, 4], [3.5, 5.5]),
    ]
    assert (curves.series[0].lower, curves.series[0].upper) == ([2.0, 4.0], [3.0, 5.0])
    row = {"net": "a", "steps": [1, 2], "loss": [[1.0, 4.0], [3.0, 6.0]]}
    (whole,) = CurvesOf(x="steps", y="loss", by="net", **words).drawing([row]).series
    assert (whole.y, whole.lower, whole.upper) == ([2.0, 5.0], [1.0, 4.0], [3.0, 6.0])
    bars = BarsOf(group="T", y="one", by="net", **words).drawing(ROWS)
    assert (bars.groups, bars.series[1].y, bars.series[1].lower) == (["2", "4"], [1.0, 2.0], None)
    grid = HeatMapOf(x="T", y="net", value="one", value_title="v", **words).drawing(ROWS[:3])
    assert grid.values == [[1.0, 2.0], [1.0, None]]
    table = TableOf(name="n", title="t", columns={"T": "T", "half": "one", "net": "net"}, words=("net",), group=("T",))
    assert table.table([row | {"net": "a"} for row in ROWS]).rows == [[2, 1.0, "a"], [4, 2.0, "a"]]


def test_the_gallery_is_drawn_from_result_files(tmp_path: Path) -> None:
    study = STUDIES["ziv-theorem-1"]
    outcomes = list(execute(study.plan("smoke"), tmp_path / "runs"))
    finding = study.analyse(outcomes, "smoke")
    file = save_result(study, finding, "smoke", outcomes, tmp_path / "gallery")
    assert [dict(row) for row in read_result(file).rows] == [dict(row) for row in finding.rows]
    written = {path.name for path in draw_gallery(tmp_path / "gallery", STUDIES.__getitem__)}
    assert written == {"README.md", "ziv-theorem-1.html", "ziv-theorem-1.svg"}
    overview = (tmp_path / "gallery" / "README.md").read_text()
    assert "| Theorem 1, depth 1: exactly min(R, M^(T/2)) | held in 2 of 2 cases | reproduced |" in overview
    verdicts = [part.verdict for part in finding.parts]
    counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
    heading = "#ziv-theorem-1-depth-and-the-memory-of-arithmetic-circuits"
    assert f"| Ziv | {counts} | [ziv-theorem-1]({heading}) |" in overview
    assert all(f"- {caveat}" in overview for caveat in study.caveats)
    assert "recorded processor time as well (1 of 1)" in overview
    declared_since = replace(study, scales={**study.scales, "smoke": {**study.settings("smoke"), "seeds": 9}})
    draw_gallery(tmp_path / "gallery", lambda name: declared_since)
    assert "- Other settings are declared by now (seeds):" in (tmp_path / "gallery" / "README.md").read_text()
    file.write_text(file.read_text().replace('"seconds"', '"minutes"'))
    with pytest.raises(UserError, match="lacks seconds: `mnemoscope study run ziv-theorem-1 --save"):
        draw_gallery(tmp_path / "gallery", STUDIES.__getitem__)
    file.write_text("{}")
    with pytest.raises(UserError, match="is not a result of a study: its schema must be"):
        draw_gallery(tmp_path / "gallery", STUDIES.__getitem__)


def test_settings_are_said_in_words() -> None:
    scale = {"widths": (10, 20, 40), "rates": (1e-3,), "copy": {"batch_size": 10, "task_settings": {"delay": 5}}}
    study = replace(STUDIES["ziv-theorem-1"], cut="{widths}; {rates}", methods="{copy}, {copy[batch_size]}")
    study = replace(study, scales={"laptop": scale})
    assert study.shortened("laptop") == "10, 20 and 40; 0.001"
    assert study.described("laptop") == "batch size 10, task settings (delay 5), 10"


def test_a_setting_of_a_scale_can_be_another() -> None:
    study = STUDIES["kerg-relational-enhanced"]
    longer = study.changed("smoke", {"iterations": 7})
    assert {spec.settings["iterations"] for spec in longer.plan("smoke")} == {7}
    assert [spec.settings["variant"] for spec in longer.plan("smoke")] == [
        spec.settings["variant"] for spec in study.plan("smoke")
    ]
    assert longer.plan("laptop") == study.plan("laptop")
    with pytest.raises(UserError, match="setting of kerg-relational-enhanced"):
        study.changed("smoke", {"iteration": 7})


def test_verdicts_are_those_of_the_contract() -> None:
    assert VERDICTS == (
        "reproduced",
        "trend reproduced at smaller scale",
        "not reproduced",
        "published value wrong",
        "not decided by these seeds",
    )


def test_scores_early_in_training_are_those_of_a_common_step() -> None:
    found = {"curve_steps": [10, 20, 30, 40], "curve_score": [[0.1, 0.2, 0.3, 0.4], [0.5, 1.0]]}
    assert early({"iterations": 120}, found) == [0.3, 1.0]
    assert early({"iterations": 80}, found) == [0.2, 1.0]
    assert early({"iterations": 8}, found) == [0.1, 0.5]


def test_a_limit_is_that_of_each_seed() -> None:
    given = {"seeds": [0, 1, 2], "criterion": 0.9}
    assert limits(given, {"levels": {"5": [1.0, 0.95, None], "10": [0.95, 0.5, 0.9]}}) == [10, 5, None]


def test_an_exception_is_placed_by_what_tells_it_from_the_other_rows() -> None:
    rule = Holds(claim="c", left="one", relation="<", right=0.0)
    row = {"task": "copy", "network": "RNN-orth", "m": "", "one": 2.123456789}
    others = [{**row, "network": "nnRNN", "m": 1, "one": -1.0}, row]
    assert rule.judge(others, "paper").measured.endswith("against 0 at network=RNN-orth")
    assert rule.judge([row], "paper").measured.endswith("against 0")
