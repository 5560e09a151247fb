"""The commands of studies, as typed."""

import json

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Runs live in a folder of the test's own."""
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    return tmp_path


def test_list(call, call_json):
    names = [study["name"] for study in call_json("study", "list")["studies"]]
    assert {"depth-fig-6", "ziv-theorem-1"} <= set(names)
    text = call("study", "list").stdout
    assert all(name in text for name in names)


def test_run_show_and_report(call, call_json, home):
    assert call_json("study", "show", "ziv-theorem-1")["scales"]["smoke"]["done"] == 0
    done = call("study", "run", "ziv-theorem-1", "--scale", "smoke", "--html", home / "page.html")
    assert done.exit_code == 0, done.stderr
    assert "smoke scale: reproduced" in done.stdout
    assert "Theorem 1" in (home / "page.html").read_text()
    assert call_json("study", "show", "ziv-theorem-1")["scales"]["smoke"]["done"] == 6
    report = call_json("study", "report", "ziv-theorem-1", "--scale", "smoke")
    assert report["verdict"] == "reproduced"
    assert report["missing"] == 0
    assert len(report["parts"]) == 5


def test_all_studies_cheapest_first_results_kept_and_drawn(call, call_json, home, monkeypatch):
    from mnemoscope.studies import STUDIES

    exact = [name for name in STUDIES if name in ("ziv-theorem-1", "tt-theorem-1")]
    monkeypatch.setattr(type(STUDIES), "__iter__", lambda self: iter(exact))
    found = call_json("study", "run", "--all", "--scale", "smoke", "--save", home / "gallery")["studies"]
    minutes = [STUDIES[study["name"]].minutes["smoke"] for study in found]
    assert minutes == sorted(minutes)
    assert {f"{name}.json" for name in exact} == {path.name for path in (home / "gallery").iterdir()}
    assert call("study", "gallery", home / "gallery").exit_code == 0
    assert (home / "gallery" / "README.md").is_file()


def test_export(call, home):
    call("study", "run", "ziv-theorem-1", "--scale", "smoke")
    done = call("study", "report", "ziv-theorem-1", "--scale", "smoke", "--export", home / "files")
    assert done.exit_code == 0, done.stderr
    assert {"claims.tex", "ranks.csv", "rank-by-horizon.pdf", "methods.txt"} <= {
        p.name for p in (home / "files").iterdir()
    }


def test_a_study_in_pieces_says_what_is_missing(call, home):
    whole = call("study", "run", "ziv-theorem-1", "--scale", "smoke", "--json")
    some = sorted((home / "runs").glob("study-*"))[:2]
    for folder in some:
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        folder.rmdir()
    partly = call("study", "report", "ziv-theorem-1", "--scale", "smoke")
    assert "2 of 6 runs are missing" in partly.stdout
    again = call("study", "run", "ziv-theorem-1", "--scale", "smoke", "--json")
    assert json.loads(again.stdout)["parts"] == json.loads(whole.stdout)["parts"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "ziv-theorem-2"), "there is no study named 'ziv-theorem-2'; did you mean 'ziv-theorem-1'?"),
        (("run", "ziv-theorem-1", "--scale", "huge"), "scale must be"),
        (("run",), "study run takes the name of a study, or --all"),
        (("run", "ziv-theorem-1", "--all"), "study run takes the name of a study, or --all"),
        (("run", "--all", "--html", "x.html"), "--html is the page of one study"),
        (("gallery", "nowhere"), "there is no folder 'nowhere'"),
        (("run", "--all", "--set", "seeds=2"), "--set is for a look at one study"),
        (("run", "depth-fig-9", "--set", "steps=2"), "setting of depth-fig-9 must be"),
        (("run", "ziv-theorem-1", "--minutes", "0"), "--minutes must be a number above 0, got 0"),
        (("run", "ziv-theorem-1", "--html", "/nowhere/page.html"), "there is no folder '/nowhere'"),
        (("report", "ziv-theorem-1", "--scale", "paper"), "no run of ziv-theorem-1 at paper scale is there"),
    ],
)
def test_mistakes(mistake, arguments, words):
    assert words in mistake("study", *arguments)


def test_without_a_command_it_says_which_there_are(call):
    done = call("study")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "report" in done.stdout


def test_ctrl_c_says_how_to_go_on(call, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mnemoscope.studies.machinery.execution._run", stop)
    done = call("study", "run", "ziv-theorem-1", "--scale", "smoke", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("interrupted after 0 of ")
    assert done.stderr.endswith(" runs; the same command goes on\n")


def test_a_damaged_record_is_one_line(call, home):
    call("study", "run", "ziv-theorem-1", "--scale", "smoke")
    next((home / "runs").glob("study-*/environment.json")).write_text("")
    done = call("study", "report", "ziv-theorem-1", "--scale", "smoke", "--json")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: ")
    assert done.stderr.count("\n") == 1
