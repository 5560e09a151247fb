"""`profile` and `compare` in Python, and the page that they make."""

import dataclasses
import json
import re

import pytest
import torch
from tests.profiles.fake_sections import fail, make, number, only
from tests.profiles.references import tiny_references
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.references import REFERENCES
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.atlas import REFERENCES as REFERENCE_SET
from mnemoscope.profiles.atlas import references as atlas
from mnemoscope.profiles.page import keyed
from mnemoscope.profiles.profile import Profile, compare, profile, read_profile
from mnemoscope.profiles.row import NetworkFacts, Row
from mnemoscope.report import Plane, render


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setattr(atlas, "rows_like", tiny_references)


@pytest.fixture(scope="module")
def gru():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atlas, "rows_like", tiny_references)
        return profile("gru", hidden_size=3, quick=True, seeds=2)


@pytest.fixture(scope="module")
def pair():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atlas, "rows_like", tiny_references)
        return compare("rnn", "irnn", hidden_size=3, quick=True, seeds=2)


def test_the_row_has_the_schema(gru):
    row = gru.rows[0].to_dict()
    assert row["schema"] == "mnemoscope.profile/1"
    assert row["network"]["weights"] == "initialised"
    assert row["settings"]["seeds"] == [0, 1]
    assert set(row["environment"]) >= {"mnemoscope", "torch", "numpy", "python", "threads", "machine", "date"}
    for part in row["parts"].values():
        assert set(part) >= {"status", "reason", "seconds", "data", "scalars", "command"}
        for scalar in part["scalars"].values():
            assert set(scalar) >= {"value", "lower", "upper", "seeds", "unit"}
    document = gru.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [each["label"] for each in document["references"]] == ["rnn", "orth-rnn"]
    assert document["verdict"]["sentence"]
    assert {each["axis"] for each in document["verdict"]["axes"]} >= {"plain memory", "gradients", "cost per step"}


def test_the_page_has_a_section_for_every_part_and_a_command_for_every_figure(gru):
    page = gru.page
    names = [section.name for section in page.sections]
    assert names == [
        *("card", "parity", "theory", "fisher", "state", "capacity", "capacity-scale", "remembrance"),
        *("gradients", "spectrum", "separation", "tracking"),
    ]
    for section in page.sections:
        assert section.headline is not None
        for figure in section.figures:
            assert figure.command.startswith("mnemoscope measure ")
            assert figure.how
            assert figure.alt
            drawing = figure.drawing
            drawn = drawing.points if isinstance(drawing, Plane) else getattr(drawing, "series", None) or drawing.values
            assert len(drawn) == 3
    assert [entry.role for entry in page.entries] == ["subject", "reference", "reference"]
    assert set(page.references) <= set(REFERENCES)
    assert {"ganguli2008", "cho2014"} & set(page.references)
    assert {reason for _, reason in page.absent} == {"not asked for: --train"}
    assert [title for title, _ in page.absent] == [
        *("What it learns to remember", "What it learns to track", "How long it really remembers"),
        "How much it recalls by keys",
    ]


def test_a_relational_network_has_its_card_and_relations_and_the_rest_with_the_reason(tmp_path):
    layer = ms.nn.create("corelnet", panels=9, answers=4, generator=torch.Generator().manual_seed(0))
    found = profile(layer, quick=True)
    page = found.page
    assert [section.name for section in page.sections] == ["card", "relations", "theory"]
    card, relations, _ = page.sections
    encoder = sum(each.numel() for each in layer.image_encoder.parameters())
    assert f"leaves out the encoder of images, which has {encoder:,} parameters" in " ".join(card.notes)
    assert "classifier" not in " ".join(card.notes)
    (figure,) = relations.figures
    alone = ms.measures.relation_matrix(layer, examples=64)
    assert figure.command == "ms.measures.relation_matrix(module, examples=64, seed=0)"
    assert torch.tensor(figure.drawing.values).numpy() == pytest.approx(alone.mean, abs=1e-6)
    assert len(page.absent) == 12
    assert dict(page.absent).pop("Symbols that training never showed") == "not asked for: --train"
    assert {reason for _, reason in page.absent[:-1]} == {
        "it takes networks of kind recurrent, and this one is of kind relational",
        "it takes networks of kind recurrent or sequence, and this one is of kind relational",
    }
    assert "own precision" in page.methods
    (tmp_path / "x.json").write_text(json.dumps(found.to_dict(), allow_nan=False))
    assert render(read_profile(tmp_path / "x.json").page)


def test_a_recurrent_network_says_nothing_of_relations(gru):
    assert not {"relations", "generalisation"} & gru.to_dict()["parts"].keys()
    assert "Relations between images" not in str(gru)


def test_methods_can_be_pasted(gru):
    text = gru.page.methods
    for words in (
        ms.__version__,
        torch.__version__,
        "freshly initialised with seeds 0, 1",
        "Student's t",
        "without an embedding",
        "Fisher memory",
    ):
        assert words in text


def test_the_line_that_made_it_makes_it_again(pair):
    assert pair.command == "ms.compare('rnn', 'irnn', hidden_size=3, quick=True, seeds=2)"
    again = eval(pair.command, {"ms": ms})
    for one, other in zip(pair.rows, again.rows, strict=True):
        for name in ("fisher", "capacity", "gradients", "spectrum", "separation"):
            assert one.section(name).scalars == other.section(name).scalars


def test_methods_name_every_network_and_rule_once(pair):
    text = pair.page.methods
    assert text.startswith("rnn (15 parameters, hidden size 3, input size 1) and irnn (15 parameters, ")
    assert text.count("were freshly initialised with seeds 0, 1") == 1
    for words in ("Linear memory capacity and capacity for products: a white input", "false discovery rate of 5%"):
        assert text.count(words) == 1


def test_the_bibliography_has_the_software_the_networks_and_the_rules(pair, tmp_path):
    pair.export(tmp_path)
    keys = set(re.findall(r"^@\w+\{(\w+),", (tmp_path / "references.bib").read_text(), re.MULTILINE))
    assert {"mnemoscope", "elman1990", "le2015", "jaeger2001", "ganguli2008", "smyth2004", "benjamini1995"} <= keys


def test_the_page_is_written_and_shown(gru, tmp_path):
    path = gru.to_html(tmp_path / "x.html")
    assert "gru" in path.read_text()
    assert "remembering under noise" in str(gru)
    assert str(gru).isascii()
    assert len(str(gru).splitlines()) <= 20
    assert repr(gru) == "<Profile of gru>"
    assert gru._repr_html_().startswith("<pre>")


def test_differences_are_to_the_first_with_an_interval(pair):
    document = pair.to_dict()
    assert document["schema"] == "mnemoscope.comparison/1"
    assert [row["label"] for row in document["profiles"]] == ["rnn", "irnn"]
    (radius,) = [each for each in document["differences"] if each["scalar"] == "radius"]
    seeds = [row["parts"]["spectrum"]["scalars"]["radius"]["seeds"] for row in document["profiles"]]
    assert radius["value"] == pytest.approx(sum(seeds[1]) / 2 - sum(seeds[0]) / 2)
    assert radius["lower"] <= radius["value"] <= radius["upper"]
    assert radius["how"].startswith("Welch, independent seeds")
    page = pair.page
    assert page.table.rows[0] == ["parameters", "15", "15"]
    assert [entry.label for entry in page.entries][:2] == ["rnn", "irnn"]
    assert page.title == "rnn and irnn"
    assert render(page)


def test_networks_with_the_same_weights_are_paired():
    with only(make("capacity", 1, number())):
        found = compare(ms.nn.RNN(1, 2), ms.nn.RNN(1, 2), quick=True)
        assert found.to_dict()["differences"][0]["how"].startswith("no interval: one set of weights")
        relu = ms.nn.NetworkSpec("rnn", hidden_size=3, nonlinearity="relu")
        same = compare(ms.nn.NetworkSpec("rnn", hidden_size=3), relu, quick=True)
    assert same.to_dict()["differences"][0]["how"] == "paired by seed, 3 pairs with the same weights"


def test_compare_needs_two():
    with pytest.raises(UserError, match="at least two networks"):
        compare("rnn")


def test_a_module_is_measured_with_its_own_weights():
    torch.manual_seed(0)
    with only(make("a", 1, number())):
        found = profile(nn.GRU(2, 3), quick=True)
    assert found.rows[0].network.weights == "given"
    assert found.rows[0].network.source == "a module of class GRU, given in Python"
    assert "given weights" in found.page.subtitle


def test_a_seed_draws_the_weights_that_training_draws():
    with only(make("a", 1, number())):
        found = profile("scornn", hidden_size=4, input_size=10, quick=True, seeds=2, seed=3)
    experiment = ms.training.Experiment({"name": "scornn", "hidden_size": 4}, {"name": "copy"}, {"iterations": 1})
    trained = [experiment.build_layer(experiment.build_task(), seed) for seed in (3, 4)]
    assert found.rows[0].settings.digests == tuple(map(weights_digest, trained))


def test_a_class_is_drawn_anew_for_every_seed():
    with only(make("a", 1, number())):
        found = profile(nn.GRU, hidden_size=3, quick=True)
    assert found.rows[0].network.weights == "initialised"
    assert found.rows[0].settings.seeds == (0, 1, 2)


def test_a_module_that_cannot_be_adapted_says_which_call_would_work():
    with pytest.raises(UserError, match=r"call ms\.adapt\(module, "):
        profile(nn.MultiheadAttention(4, 2))


def test_options_go_to_the_constructor():
    with only(make("a", 1, number())):
        found = profile("cprnn", hidden_size=3, rank=2, quick=True)
    assert found.rows[0].network.options == {"rank": 2}
    with pytest.raises(UserError, match="rnn cannot be built|RNN has no option"):
        profile("rnn", hidden_size=3, rank=2)


def test_what_is_absent_is_listed_with_the_reason():
    with only(make("a", 1, fail), make("b", 2, number(), kinds=("sequence",)), make("c", 3, number())):
        found = profile("rnn", hidden_size=3, quick=True)
        absent = dict(found.page.absent)
    assert absent["The a"] == "failed: ZeroDivisionError: division by zero"
    assert absent["The b"] == "it takes networks of kind sequence, and this one is of kind recurrent"
    assert "The c" not in absent
    assert found.failed == ("a",)


def test_results_are_taken_up_from_beside_the_page(tmp_path):
    calls = []

    def counted(context):
        calls.append(context.seed)
        return number()(context)

    with only(make("a", 1, counted)):
        first = profile("rnn", hidden_size=3, quick=True, html=tmp_path / "x.html")
        again = profile("rnn", hidden_size=3, quick=True, html=tmp_path / "x.html")
    assert calls == [0, 1, 2]
    assert first.rows[0].sections == again.rows[0].sections
    assert (tmp_path / "x.profile.json").is_file()


def test_references_are_measured_anew_at_equal_parameters():
    with only(make("a", 1, number())):
        found = profile("gru", hidden_size=5, quick=True, fresh=True)
    own = found.rows[0].network.parameters
    counts = {row.label: row.network.parameters for row in found.references}
    assert set(counts) == {"gru (reference)" if name == "gru" else name for name in REFERENCE_SET}
    for count in counts.values():
        assert abs(count - own) <= 2 * 11 + 3  # half the step from one size to the next: (n + 1)^2 - n^2
    assert "measured on this machine" in found.about_references


def test_equal_labels_are_told_apart():
    row, other = (Row(label="rnn", network=NetworkFacts(hidden_size=size)) for size in (4, 8))
    found = keyed([row, other, row], ["rnn n=8"])
    assert [each.key for each in found] == ["rnn n=4", "rnn n=8 (reference)", "rnn n=4 (2)"]
    assert row.key == "rnn"


def test_a_page_is_drawn_again_from_its_json(gru, pair, tmp_path):
    for found in (gru, pair):
        path = tmp_path / "x.json"
        path.write_text(json.dumps(found.to_dict()))
        again = read_profile(path)
        assert again.to_dict() == found.to_dict()
        assert render(again.page) == render(dataclasses.replace(found, command="").page)
        assert str(again) == str(found)


def test_an_older_profile_has_the_defaults_of_what_it_had_not():
    old = {"schema": "mnemoscope.profile/1", "label": "rnn", "network": {"name": "rnn"}, "parts": {"fisher": {}}}
    (row,) = Profile.from_dict(old).rows
    assert row.section("fisher").done
    assert (row.network.causal, row.settings.quick, row.section("card").status) == (True, False, "stopped")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "the schema of a profile must be 'mnemoscope.profile/1' or 'mnemoscope.comparison/1', got []"),
        ({"schema": "mnemoscope.profile/9"}, "got 'mnemoscope.profile/9'"),
        ({"schema": "mnemoscope.profile/1"}, "this is not the Row of a profile"),
        ({"schema": "mnemoscope.profile/1", "label": "a", "network": 3}, "must be an object of JSON, got 3"),
        ({"schema": "mnemoscope.comparison/1", "profiles": 3}, "this is not a whole profile"),
    ],
)
def test_what_is_no_profile(document, said, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(UserError) as raised:
        read_profile(tmp_path / "x.json")
    assert said in str(raised.value)


def test_hostile_names_stay_text(tmp_path):
    Evil = type("<script>alert(1)</script>", (nn.GRU,), {})
    with only(make("a", 1, number())):
        found = profile(Evil(1, 2), quick=True)
    assert isinstance(found, Profile)
    assert "<script>alert(1)" not in found.to_html(tmp_path / "x.html").read_text()
    assert "<script>" not in found._repr_html_()
