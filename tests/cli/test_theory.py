"""The commands theory and theory check, on claims of our own."""

import json

import pytest

from mnemoscope.studies.claims import CLAIMS, Claim, Verdict


def check_true(seed):
    print("chatter of a check")
    return Verdict(confirmed=True, cases=40 + seed, evidence="the largest difference is 1e-15")


def check_false(seed):
    return Verdict(confirmed=True, cases=1, evidence=f"at n = {seed + 2} it says 3, and 4 is right")


def check_refuted(seed):
    return Verdict(confirmed=seed != 0, cases=7, evidence="case 5 has 2 where 1 was claimed")


def check_broken(seed):
    raise ZeroDivisionError("division\nby zero")


@pytest.fixture(autouse=True)
def claims(monkeypatch):
    """A table of claims that are known here."""
    entries = [
        Claim("delay-line", "Kerg Prop. 3.4.1", "The delay line is the best.", "proved", check_true),
        Claim("sparse-law", "Kerg Thm. 2", "Gradients fall as 1/T.", "false", check_false, "They fall as 2/T."),
    ]
    monkeypatch.setattr(CLAIMS, "_entries", {entry.name: entry for entry in entries})
    monkeypatch.setattr(CLAIMS, "_plugins_loaded", True)


@pytest.fixture
def doubtful(monkeypatch):
    entries = [
        Claim("guess", "Ziv Conj. 1", "It is one.", "measured", check_refuted),
        Claim("broken", "nowhere", "It works.", "proved", check_broken),
    ]
    monkeypatch.setattr(CLAIMS, "_entries", {**CLAIMS._entries, **{entry.name: entry for entry in entries}})


def test_the_list(call, doubtful):
    done = call("theory")
    assert done.exit_code == 0
    assert "delay-line (Kerg Prop. 3.4.1): proved\n    The delay line is the best.\n\n" in done.stdout
    assert (
        "sparse-law (Kerg Thm. 2): false as published\n    Gradients fall as 1/T.\n    Right: They fall as 2/T.\n"
        in done.stdout
    )
    assert "4 claims: 2 proved, 1 measured, 1 false as published\n" in done.stdout


def test_the_list_in_json(call_json):
    document = call_json("theory")
    assert [claim["name"] for claim in document["claims"]] == ["delay-line", "sparse-law"]
    assert document["claims"][1] == {
        "name": "sparse-law",
        "source": "Kerg Thm. 2",
        "status": "false",
        "statement": "Gradients fall as 1/T.",
        "correction": "They fall as 2/T.",
    }


def test_checks(call):
    done = call("theory", "check")
    assert done.exit_code == 0
    assert (
        "delay-line (Kerg Prop. 3.4.1): proved, confirmed on 40 cases\n    the largest difference is 1e-15\n"
        in done.stdout
    )
    assert (
        "sparse-law (Kerg Thm. 2): false as published, confirmed on 1 case\n"
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
        "source": "Kerg Thm. 2",
        "status": "false",
        "statement": "Gradients fall as 1/T.",
        "correction": "They fall as 2/T.",
        "confirmed": True,
        "cases": 1,
        "evidence": "at n = 5 it says 3, and 4 is right",
    }


def test_one_that_is_not_confirmed_is_exit_code_1(call, doubtful):
    done = call("theory", "check")
    assert done.exit_code == 1
    assert "guess (Ziv Conj. 1): measured, NOT CONFIRMED on 7 cases\n    case 5 has 2" in done.stdout
    assert "    the check broke: ZeroDivisionError: division by zero\n" in done.stdout
    assert "2 of 4 claims confirmed" in done.stdout
    document = json.loads(call("theory", "check", "--json").stdout)
    assert document["not_confirmed"] == ["broken", "guess"]
    assert call("theory", "check", "guess", "--seed", 1).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "delay-lien"], "there is no claim named 'delay-lien'; did you mean 'delay-line'?"),
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


@pytest.mark.parametrize("arguments", [["theory"], ["theory", "check"]])
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
