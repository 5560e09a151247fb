"""Studies of relational networks: their runs, the rule that compares networks, and a training of one."""

import pytest

from mnemoscope.nn import names
from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import NO_VERDICT, UNDECIDED
from mnemoscope.studies.machinery.relational import VARIANTS, ahead, train_relational

KERG = [name for name in STUDIES.names() if name.startswith("kerg-relational")]


def test_six_studies():
    kinds = ("ablations", "basic", "comparison", "encoder", "enhanced", "games")
    assert [f"kerg-relational-{kind}" for kind in kinds] == KERG
    assert {name for name, _ in VARIANTS.values()} <= set(names("relational"))


@pytest.mark.parametrize("name", KERG)
def test_rules_and_displays_fit_the_rows(name):
    """Every scale plans runs whose rows all rules and displays can read; a network is named in the entries."""
    study = STUDIES[name]
    for scale in ("smoke", "laptop", "paper"):
        plan = study.plan(scale)
        assert len({spec.key for spec in plan}) == len(plan)
        rows = []
        for number, spec in enumerate(plan):
            tests = ("hexominoes", "stripes") if spec.settings["task"].startswith("games") else ("held out",)
            summary = {"accuracy": {test: [0.5 + 0.001 * number] * len(spec.settings["seeds"]) for test in tests}}
            rows += study.rows(type("Outcome", (), {"spec": spec, "summary": summary})())
        assert {row["network"] for row in rows} <= set(study.entries)
        found = study.judge(rows, scale)
        assert (found.verdict == NO_VERDICT) == (scale == "smoke")
        if scale == "paper":
            assert not any("nothing measured" in one.measured or "0 of 0" in one.measured for one in found.parts)


def test_ahead_compares_case_by_case():
    rule = ahead("A is ahead", network="A", other="B", margin=10.0)
    rows = [{"case": case, "m": "", "network": name, "accuracy": [mean, mean]} for case, name, mean in
            (("x", "A", 90.0), ("x", "B", 79.0), ("y", "A", 60.0), ("y", "B", 50.0), ("z", "A", 1.0))]  # fmt: skip
    assert rule.judge(rows, "paper").verdict == "reproduced"
    assert rule.judge(rows, "laptop").verdict == "trend reproduced at smaller scale"
    nearer = [{**row, "accuracy": [one + (row["network"] == "B") for one in row["accuracy"]]} for row in rows]
    assert rule.judge(nearer, "paper").verdict == "not reproduced"
    assert rule.judge([{**row, "accuracy": row["accuracy"][:1]} for row in rows], "paper").verdict == UNDECIDED
    assert rule.judge([], "paper").verdict == UNDECIDED
    assert "79 at B, 90 at A (+11, 95% 11 to 11) in x; 50 at B, 60 at A" in rule.judge(rows, "paper").measured


def test_a_training_has_a_split_of_its_own_for_every_seed(tmp_path):
    settings = {"variant": "CoRelNet", "task": "same-different", "task_settings": {"images": "own"}, "seeds": [0, 1]}
    settings |= {"iterations": 60, "batch_size": 32, "optimizer": "adam", "lr": 5e-4, "test_size": 100}
    found = train_relational(settings, tmp_path)
    assert list(found["accuracy"]) == ["held_out=98"]
    assert min(found["accuracy"]["held_out=98"]) > 0.9
    assert len(list(tmp_path.iterdir())) == 2
