"""The command compare: several networks on one page, with differences."""

import re
import shlex

import pytest
from tests.profiles.fake_sections import make, number, only
from tests.profiles.references import tiny_references

import mnemoscope as ms
from mnemoscope.profiles.atlas import references as atlas
from mnemoscope.profiles.section import all_sections


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atlas, "rows_like", tiny_references)
    return tmp_path


@pytest.fixture
def fake():
    with only(make("fisher", 1, number("total"))):
        yield


def test_several_networks_side_by_side(call, folder, fake):
    done = call("compare", "rnn", "gru", "lstm", "--hidden", 3, "--seeds", 2)
    assert done.exit_code == 0, done.stderr
    for words in ("rnn: 15 parameters, n = 3", "gru: 54 parameters, n = 3", "lstm: 72 parameters, n = 3"):
        assert words in done.stdout
    page = (folder / "rnn-vs-gru-vs-lstm.html").read_text()
    assert "Best in bold" in page
    assert "page: rnn-vs-gru-vs-lstm.html" in done.stdout


def test_differences_in_json(call_json, fake):
    found = call_json("compare", "rnn", "gru", "--hidden", 3, "--seeds", 3)
    (difference,) = found["differences"]
    assert (difference["of"], difference["against"], difference["value"]) == ("gru", "rnn", 0.0)
    assert difference["lower"] == pytest.approx(-difference["upper"])
    # both have the seeds' values 0.1, 1.1, 2.1: s^2 = 1, 4 degrees of freedom, t = 2.776445
    assert difference["upper"] == pytest.approx(2.776445 * (2 / 3) ** 0.5, rel=1e-6)


def test_a_saved_network_beside_a_name_has_its_own_size(call, fake):
    ms.nn.save(ms.nn.GRU(2, 5), "x.safetensors")
    done = call("compare", "rnn", "x.safetensors", "--hidden", 3)
    assert done.exit_code == 0, done.stderr
    assert "x: 135 parameters, n = 5" in done.stdout


def test_the_same_network_twice_is_told_apart(call_json, fake):
    found = call_json("compare", "rnn", "rnn", "--hidden", 3)
    assert [row["key"] for row in found["profiles"]] == ["rnn n=3", "rnn n=3 (2)"]


def test_how_to_go_on_after_an_interrupt(call):
    def stop(context):
        raise KeyboardInterrupt

    with only(make("a", 1, stop)):
        done = call("compare", "rnn", "gru", "--hidden", 3, "--set", "bias=false", "--quick", "--html", "x.html")
    command = "mnemoscope compare rnn gru --hidden 3 --set bias=false --quick --html x.html"
    assert done.stderr.endswith(f"Go on with: {command}\n")
    with only(make("a", 1, number())):
        assert call(*shlex.split(command)[1:]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("rnn", "compare must be given at least two networks, got rnn"),
        ("rnn lstn", "there is no network named 'lstn'; did you mean 'lstm'?"),
        ("rnn gru --hidden 0", "--hidden must be a positive integer, got 0"),
        ("rnn gru --minutes 0", "--minutes must be a number above 0 (--full: as long as it takes), got 0.0"),
        ("rnn gru --html gone/x.html", "'gone/x.html' cannot be written: there is no folder 'gone'"),
    ],
)
def test_a_mistake_is_one_line(mistake, fake, arguments, said):
    assert mistake("compare", *shlex.split(arguments)).startswith(said)


def test_names_that_leave_the_same_letters_have_pages(call, folder, fake):
    classes = "".join(f"class {name}(torch.nn.RNN): pass\n" for name in ("My__Net_", "My_Net", "Ünï"))
    (folder / "cells.py").write_text(f"import torch\n{classes}")
    for names in (("rnn", "rnn"), ("cells.py:My_Net", "cells.py:My__Net_", "cells.py:Ünï")):
        done = call("compare", *names, "--hidden", 3, "--seeds", 2, "--html", "page.html")
        assert done.exit_code == 0, done.stderr
        assert (folder / "page.html").is_file()


def test_a_network_has_sizes_of_its_own(call_json):
    found = call_json("compare", "lstm:hidden=3", "gru:parameters=60", "rnn", "--hidden", 4, "--quick", "--seeds", 2)
    sizes = [row["network"]["hidden_size"] for row in found["profiles"]]
    assert (sizes[0], sizes[2]) == (3, 4)
    assert found["profiles"][1]["network"]["parameters"] in range(50, 71)


def test_sizes_that_are_none(call):
    for words, said in (
        (("compare", "lstm:hidden=x", "gru"), "hidden must be a positive integer"),
        (("profile", "lstm", "gru"), "mnemoscope compare lstm gru"),
        (("profile", "rnn", "--sizes", "8"), "at least two positive integers"),
        (("profile", "rnn", "--sizes", "8,16", "--hidden", 3), "neither --hidden nor --parameters"),
    ):
        done = call(*words)
        assert done.exit_code == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_growth_with_size(call_json):
    found = call_json("profile", "rnn", "--sizes", "2,4", "--quick", "--seeds", 2)
    assert [row["network"]["hidden_size"] for row in found["profiles"]] == [2, 4]


def test_the_command_that_made_it_makes_it_again(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = [each for each in all_sections() if each.name in ("capacity", "gradients")]
    monkeypatch.setattr("mnemoscope.profiles.runner.all_sections", lambda: few)
    asked = ("rnn:hidden=4", "lstm", "--parameters", 60, "--quick", "--seeds", 2, "--seed", 3, "--minutes", 5)
    call("compare", *asked, "--export", "one", "--html", "one.html")
    (made,) = re.findall(r"^Made by: mnemoscope (.*)$", (tmp_path / "one" / "methods.txt").read_text(), re.MULTILINE)
    assert made.startswith("compare rnn:hidden=4 lstm --parameters 60 ")
    assert made.endswith("--quick --seed 3 --seeds 2 --minutes 5 --html one.html")
    (tmp_path / "one.html").unlink()
    (tmp_path / "one.profile.json").unlink()
    done = call(*shlex.split(made), "--export", "two")
    assert done.exit_code == 0, done.stderr
    one, two = ((tmp_path / name / "comparison.csv").read_text() for name in ("one", "two"))
    assert one == two
