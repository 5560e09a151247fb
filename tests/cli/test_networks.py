"""The commands networks, show and cite."""

import json
import re

import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.references import REFERENCES

NAMES = ms.nn.names()


def parameters(name):
    """Count by hand what the table says."""
    sizes = {"recurrent": {"input_size": 10, "hidden_size": 64}}
    sizes["classifier"] = {"features": 10, "rank": 64, "length": 16, "classes": 10}
    sizes["relational"] = {"panels": 2, "answers": 2}
    cls = ms.nn.get(name)
    if not isinstance(cls.small_sizes.get("hidden_size", 0), int):
        sizes["recurrent"] = {"input_size": (5, 5) if cls.input_axes == 2 else 10, "hidden_size": (8, 8)}
    return sum(p.numel() for p in ms.nn.create(name, **sizes[cls.kind]).parameters())


@pytest.fixture
def user_file(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text('''
import torch

print("printed while the file runs")


class Plain(torch.nn.RNN):
    """A network without a card.

    Parameters
    ----------
    wide : bool, optional
        Whether it is wide.
    """

    def __init__(self, input_size, hidden_size, wide=False, kind=torch.float32):
        super().__init__(input_size, hidden_size)


class Odd(torch.nn.Module):
    def __init__(self, matrix):
        super().__init__()


def build():
    return Plain(3, 4)
''')
    return path


# networks -------------------------------------------------------------------------------------------


def test_networks_lists_all_with_one_row_each_in_a_pipe(call):
    lines = call("networks").stdout.splitlines()
    assert lines[0].split() == ["name", "family", "kind", "state", "params", "reference"]
    rows = {line.split()[0]: line for line in lines[1 : len(NAMES) + 1]}
    assert sorted(rows) == NAMES
    for name in NAMES:
        card = ms.nn.get(name).card
        assert f" {card.family} " in rows[name]
        assert f" {card.state} ".replace("  ", " ") in rows[name]
        assert f" {parameters(name):,} " in rows[name]
        assert rows[name].rstrip().endswith(REFERENCES[card.references[0]].short)
    assert f"{len(NAMES)} networks." in lines[len(NAMES) + 2]
    assert "hidden_size = 64 and input_size = 10" in lines[len(NAMES) + 3]


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_networks_fits_the_terminal_and_loses_nothing(call, columns):
    text = call("networks", columns=columns).stdout
    assert all(len(line) <= columns for line in text.splitlines())
    assert "…" not in text
    words = text.split()
    assert set(NAMES) <= set(words)
    for name in NAMES:
        assert f"{parameters(name):,}" in words
        for key in ms.nn.get(name).card.references[:1]:
            assert set(REFERENCES[key].short.split()) <= set(words)


def test_networks_does_not_cut_names_in_a_narrow_terminal(call):
    text = call("networks", columns=30).stdout
    assert set(NAMES) <= set(text.split())
    assert "…" not in text


def test_networks_is_ordered_by_family(call_json):
    rows = call_json("networks")["networks"]
    order = [(row["family"], row["name"]) for row in rows]
    assert order == sorted(order)


def test_networks_json(call_json):
    document = call_json("networks")
    assert document["parameters_counted_at"] == {"input_size": 10, "hidden_size": 64, "num_layers": 1}
    rows = {row["name"]: row for row in document["networks"]}
    assert sorted(rows) == NAMES
    assert rows["exprnn"] == {
        "name": "exprnn",
        "class": "ExpRNN",
        "family": "orthogonal",
        "kind": "recurrent",
        "state": "n (real field), 2n (complex field)",
        "parameters": 64 * 63 // 2 + 64 * 10 + 64,
        "references": ["lezcano2019", "lezcano2019dtriv", "hyland2017"],
    }
    assert rows["lstm"]["parameters"] == sum(p.numel() for p in torch.nn.LSTM(10, 64).parameters())


@pytest.mark.parametrize("kind", ["recurrent", "sequence", "classifier", "relational"])
def test_networks_of_one_kind(call, call_json, kind):
    rows = call_json("networks", "--kind", kind)["networks"]
    assert sorted(row["name"] for row in rows) == ms.nn.names(kind)
    assert f"{len(rows)} networks." in call("networks", "--kind", kind).stdout


# show -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_show_says_everything_in_80_columns(call, name):
    done = call("show", name)
    assert done.exit_code == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    words = " ".join(done.stdout.split())
    card = ms.nn.get(name).card
    for said in (*card.equations, *card.notes, *(REFERENCES[key].text for key in card.references)):
        assert " ".join(said.split()) in words
    assert words.startswith(f"{name} ({card.family}, {card.kind}) ")
    assert f"parameters: {parameters(name):,} with" in words


def test_show_explains_arguments_own_ones_first(call):
    text = call("show", "nnrnn").stdout
    assert "\nArguments of NNRNN\n  input_size: int | tuple[int, ...]\n      Numbers per step of the input, d;" in text
    assert '\n  gamma: str = \'regularised\'\n      "regularised", "free" or "clamped" at gamma_value.\n' in text
    places = [text.index(f"\n  {name}: ") for name in ("num_layers", "block", "nonlinearity", "bias", "generator")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "argument", "default"),
    [("nnrnn", "nonlinearity", "modrelu"), ("irnn", "nonlinearity", "relu"), ("irnn", "init", "identity")],
)
def test_show_gives_the_default_that_the_class_decides(call_json, name, argument, default):
    (found,) = [entry for entry in call_json("show", name)["arguments"] if entry["name"] == argument]
    assert found["default"] == default
    assert getattr(ms.nn.create(name, input_size=2, hidden_size=4), argument) == default


def test_show_leaves_out_what_a_network_does_not_take(call_json):
    names = [entry["name"] for entry in call_json("show", "linear-rnn")["arguments"]]
    assert "init" in names
    assert "nonlinearity" not in names


def test_show_json(call_json):
    document = call_json("show", "ornn")
    card = ms.nn.get("ornn").card
    assert document["equations"] == list(card.equations)
    assert document["notes"] == list(card.notes)
    assert document["citations"] == [REFERENCES[key].text for key in card.references]
    assert document["summary"] == "An orthogonal network whose V is a product of m reflections."
    by_name = {entry["name"]: entry for entry in document["arguments"]}
    assert by_name["hidden_size"] == {
        "name": "hidden_size",
        "type": "int",
        "required": True,
        "default": None,
        "meaning": "Units per layer, n.",
    }
    assert by_name["dropout"]["default"] == 0.0
    assert not by_name["dropout"]["required"]


def test_show_a_network_of_a_file(call, user_file):
    done = call("show", f"{user_file}:Plain")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        f"{user_file}:Plain\n"
        "A network without a card.\n"
        "\n"
        "Size\n"
        "  parameters: 4,864 with input_size = 10, hidden_size = 64, one layer\n"
        "\n"
        "Arguments of Plain\n"
        "  input_size\n"
        "  hidden_size\n"
        "  wide: bool = False\n"
        "      Whether it is wide.\n"
        "  kind = torch.float32\n"
    )
    assert done.stderr == "printed while the file runs\n"


def test_show_json_is_one_document_whatever_the_file_prints(call, user_file):
    done = call("show", f"{user_file}:Plain", "--json")
    document = json.loads(done.stdout)
    assert document["class"] == "Plain"
    assert document["arguments"][3] == {
        "name": "kind",
        "type": "",
        "required": False,
        "default": "torch.float32",
        "meaning": "",
    }
    assert document["family"] is None
    assert document["references"] == []


def test_show_a_network_that_cannot_be_built_by_sizes(call, user_file):
    done = call("show", f"{user_file}:Odd")
    assert done.exit_code == 0
    assert "parameters" not in done.stdout
    assert "  matrix\n" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (":build", "must be a class derived from torch.nn.Module, got <function build"),
        (":Plian", "has no 'Plian'; it defines Odd, Plain; did you mean 'Plain'?"),
        ("", "name the class too, as in"),
    ],
)
def test_show_what_is_no_network(call, user_file, name, said):
    done = call("show", f"{user_file}{name}")
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert said in line


def test_show_a_file_that_cannot_be_run(mistake, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("x = 1\ny = = 2\n")
    assert mistake("show", f"{path}:Net").startswith(
        f"{path} cannot be run: SyntaxError: invalid syntax (line 2); it may"
    )


# cite -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_cite_prints_the_bibtex_of_the_card(call, name):
    entries = [REFERENCES[key].bibtex() for key in ms.nn.get(name).card.references]
    assert call("cite", name).stdout == "\n\n".join(entries) + "\n"


def test_cite_json(call_json):
    document = call_json("cite", "goru")
    assert document["network"] == "goru"
    assert [entry["key"] for entry in document["references"]] == ["jing2019", "lezcano2019"]
    assert document["references"][0]["bibtex"] == REFERENCES["jing2019"].bibtex()
    assert document["references"][0]["text"].startswith("Li Jing, Caglar Gulcehre,")


def test_cite_what_was_used(call, mistake):
    done = call("cite", "mnemoscope", "lstm", "memory-capacity", "copying", "kerg-alpha")
    keys = re.findall(r"^@\w+\{(\w+),", done.stdout, re.MULTILINE)
    assert keys[:2] == ["mnemoscope", "hochreiter1997"]
    assert {"jaeger2001", "dambre2012", "arjovsky2016", "kerg2022thesis"} <= set(keys)
    assert len(keys) == len(set(keys))
    assert "there is no network, measure, task, environment or claim named 'nothing'" in mistake("cite", "nothing")


def test_cite_without_reference(call, user_file):
    done = call("cite", f"{user_file}:Plain")
    assert done.exit_code == 2
    assert done.stderr.endswith(f"error: {user_file}:Plain names no reference\n")


def test_cite_a_reference_that_is_not_in_the_bibliography(process, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "from mnemoscope.nn import RNN, network\n"
        "@network('own', family='first order', equations=(), state='n', references=('me2026',))\n"
        "class Own(RNN):\n"
        "    pass\n"
    )
    done = process("cite", f"{path}:Own")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: own cites 'me2026', which mnemoscope.core.references.REFERENCES lacks\n"
