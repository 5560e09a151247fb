"""The commands theory and theory check, on claims of our own."""

import json

import pytest

from mnemoscope.theory.theorems import THEOREMS, Theorem, Verdict


def check_true(seed):
    print("chatter of a check")
    return Verdict(confirmed=True, cases=40 + seed, evidence="the largest difference is 1e-15")


def check_false(seed):
    return Verdict(confirmed=True, cases=1, evidence=f"at n = {seed + 2} it says 3, and 4 is right")


def check_refuted(seed):
    return Verdict(confirmed=seed != 0, cases=7, evidence="case 5 has 2 where 1 was claimed")


def check_broken(seed):
    raise ZeroDivisionError("division\nby zero")


PROVED = ("", "", "forty lines and more.")
ERRATUM = ("wrong constant", "they fall as 2/T.", "one case by hand.")


@pytest.fixture(autouse=True)
def claims(monkeypatch):
    """A table of claims that are known here."""
    entries = [
        Theorem(
            "delay-line", "kerg2022thesis", "Prop. 3.4.1", "The delay line is the best.", "proved", check_true, *PROVED
        ),
        Theorem("sparse-law", "kerg2022thesis", "Thm. 2", "Gradients fall as 1/T.", "false", check_false, *ERRATUM),
    ]
    monkeypatch.setattr(THEOREMS, "_entries", {entry.name: entry for entry in entries})
    monkeypatch.setattr(THEOREMS, "_plugins_loaded", True)


@pytest.fixture
def doubtful(monkeypatch):
    entries = [
        Theorem("guess", "ziv2020", "Conj. 1", "It is one.", "measured", check_refuted),
        Theorem("broken", "", "", "It works.", "proved", check_broken),
    ]
    monkeypatch.setattr(THEOREMS, "_entries", {**THEOREMS._entries, **{entry.name: entry for entry in entries}})


def test_the_list(call, doubtful):
    done = call("theory")
    assert done.exit_code == 0
    assert (
        "delay-line (Kerg 2022, Prop. 3.4.1): proved\n    The delay line is the best.\n"
        "    Check: forty lines and more.\n\n" in done.stdout
    )
    assert (
        "sparse-law (Kerg 2022, Thm. 2): false as published (wrong constant)\n    Gradients fall as 1/T.\n"
        "    Right: they fall as 2/T.\n    Check: one case by hand.\n" in done.stdout
    )
    assert "4 claims: 2 proved, 1 measured, 1 false as published\n" in done.stdout


def test_the_list_in_json(call_json):
    document = call_json("theory")
    assert [claim["name"] for claim in document["claims"]] == ["delay-line", "sparse-law"]
    assert document["claims"][1] == {
        "name": "sparse-law",
        "source": "Kerg 2022, Thm. 2",
        "reference": "kerg2022thesis",
        "status": "false",
        "severity": "wrong constant",
        "statement": "Gradients fall as 1/T.",
        "correction": "they fall as 2/T.",
        "proof": "",
        "tested": "one case by hand.",
    }


def test_the_list_by_status_and_severity(call, call_json, doubtful):
    assert [one["name"] for one in call_json("theory", "--status", "proved")["claims"]] == ["broken", "delay-line"]
    assert [one["name"] for one in call_json("theory", "--status", "false", "--severity", "wrong")["claims"]] == [
        "sparse-law"
    ]
    assert "no claims of this kind\n" in call("theory", "--severity", "misprint").stdout


def test_cite(call, call_json):
    done = call("theory", "cite", "delay-line", "sparse-law")
    assert done.stdout.startswith("@misc{kerg2022thesis,\n  author = {Kerg, Giancarlo},\n")
    assert done.stdout.count("@") == 1
    document = call_json("theory", "cite", "sparse-law")
    assert document["claims"] == [{"name": "sparse-law", "source": "Kerg 2022, Thm. 2", "key": "kerg2022thesis"}]
    assert [entry["key"] for entry in document["references"]] == ["kerg2022thesis"]


def test_checks(call):
    done = call("theory", "check")
    assert done.exit_code == 0
    assert (
        "delay-line (Kerg 2022, Prop. 3.4.1): proved, confirmed on 40 cases\n    the largest difference is 1e-15\n"
        in done.stdout
    )
    assert (
        "sparse-law (Kerg 2022, Thm. 2): false as published (wrong constant), confirmed on 1 case\n"
        "    Witness: at n = 2 it says 3, and 4 is right\n" in done.stdout
    )
    assert done.stdout.endswith("2 of 2 claims confirmed, on 41 cases drawn with seed 0\n")
    assert done.stderr == "chatter of a check\n"


def test_some_checks_with_a_seed(call_json):
    document = call_json("theory", "check", "sparse-law", "sparse-law", "--seed", 3)
    assert document["seed"] == 3
    assert document["not_confirmed"] == []
    (claim,) = document["claims"]
    assert claim.pop("seconds") >= 0
    assert claim == {
        "name": "sparse-law",
        "source": "Kerg 2022, Thm. 2",
        "reference": "kerg2022thesis",
        "status": "false",
        "severity": "wrong constant",
        "statement": "Gradients fall as 1/T.",
        "correction": "they fall as 2/T.",
        "proof": "",
        "tested": "one case by hand.",
        "confirmed": True,
        "cases": 1,
        "evidence": "at n = 5 it says 3, and 4 is right",
    }


def test_what_is_our_own_has_no_paper(mistake, doubtful):
    assert mistake("theory", "cite", "broken") == "broken is Mnemoscope's own result: there is no paper to cite"


def test_one_that_is_not_confirmed_is_exit_code_1(call, doubtful):
    done = call("theory", "check")
    assert done.exit_code == 1
    assert "guess (Ziv 2020, Conj. 1): measured, NOT CONFIRMED on 7 cases\n    case 5 has 2" in done.stdout
    assert "    the check broke: ZeroDivisionError: division by zero\n" in done.stdout
    assert "2 of 4 claims confirmed" in done.stdout
    document = json.loads(call("theory", "check", "--json").stdout)
    assert document["not_confirmed"] == ["broken", "guess"]
    assert call("theory", "check", "guess", "--seed", 1).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "delay-lien"], "there is no claim named 'delay-lien'; did you mean 'delay-line'?"),
        (["--status", "wrong"], "status must be 'proved' or 'measured' or 'false', got 'wrong'"),
        (["--severity", "bad"], "severity must be 'wrong result' or 'wrong constant' or"),
        (["cite", "delay-lien"], "there is no claim named 'delay-lien'; did you mean 'delay-line'?"),
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["check", "--sede", "1"], "No such option: --sede (Possible options: --seed)"),
        (
            ["check", "--seed", "x"],
            "Invalid value for '--seed': Input should be a valid integer, unable to parse string",
        ),
    ],
)
def test_a_mistake_is_one_line(mistake, arguments, said):
    assert mistake("theory", *arguments).startswith(said)


@pytest.mark.parametrize("arguments", [["theory"], ["theory", "check"], ["theory", "cite"]])
def test_help(call, arguments):
    done = call(*arguments, "--help")
    assert done.exit_code == 0
    assert "--json" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_all_is_all_and_not_some(call):
    found = json.loads(call("theory", "check", "--all", "--json").stdout)
    assert [one["name"] for one in found["claims"]] == ["delay-line", "sparse-law"]
    done = call("theory", "check", "--all", "delay-line")
    assert done.exit_code == 2
    assert done.stderr == "error: give names or --all, not both: got 'delay-line' and --all\n"
