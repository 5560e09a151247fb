"""The table of parts: how one joins, in which order they are, and what a call runs."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.profiles import fake_parts
from tests.profiles.fake_parts import only

import mnemoscope as ms
from mnemoscope.core import registry as core_registry
from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.runner import Runner
from mnemoscope.profiles.section import PARTS, Call, Context, Part, part, parts
from mnemoscope.profiles.settings import Settings


def test_the_parts_of_the_contract_are_there_in_their_order():
    names = [each.name for each in parts()]
    ours = ["card", "theory", "fisher", "capacity", "gradients", "spectrum", "separation"]
    assert [name for name in names if name in ours] == ours


def test_a_part_joins_by_registering_itself(monkeypatch):
    monkeypatch.setattr(PARTS, "_entries", dict(PARTS._entries))

    @part("trained-capacity", title="Trained capacity", order=35)
    class Trained(Part):
        def seconds(self, network, context):
            return 0.0

        def run(self, network, context):
            raise NotImplementedError

        def section(self, rows, subjects):
            return None

    names = [each.name for each in parts()]
    assert names.index("fisher") < names.index("trained-capacity") < names.index("capacity")
    with pytest.raises(UserError, match="the part name 'trained-capacity' is taken"):
        part("trained-capacity", title="Again", order=1)(Trained)


def test_other_packages_announce_theirs_by_entry_points(monkeypatch):
    monkeypatch.setattr(PARTS, "_entries", dict(PARTS._entries))
    monkeypatch.setattr(PARTS, "_plugins_loaded", False)
    monkeypatch.setattr(fake_parts, "Plugin", fake_parts.make("plugin", 5, fake_parts.number()), raising=False)
    point = EntryPoint("plugin", f"{fake_parts.__name__}:Plugin", "mnemoscope.parts")
    monkeypatch.setattr(core_registry, "entry_points", lambda group: [point] if group == "mnemoscope.parts" else [])
    assert parts()[0].name == "plugin"


@pytest.mark.parametrize(
    ("network", "against"),
    [
        (ms.nn.RNN(1, 2), None),
        (ms.nn.RNN(1, 2, bidirectional=True), "it needs a causal network, and this one reads the future"),
        (ms.nn.CP(2, 2, 4, 2), "it takes networks of kind recurrent, and this one is of kind classifier"),
    ],
)
def test_a_part_says_why_it_does_not_apply(network, against):
    (fisher,) = [each for each in parts() if each.name == "fisher"]
    assert fisher.reason_against(network, Context()) == against


def test_a_call_runs_the_measure_with_the_seed_where_it_takes_one():
    layer = ms.nn.RNN(1, 3)
    options = {"horizon": 20, "trajectories": 2}
    assert Call("gradients", options)(layer, 7).rate == ms.measures.gradient_norms(layer, **options, seed=7).rate
    assert Call("spectrum")(layer, 7).radius == ms.measures.spectrum(layer).radius


def test_the_part_of_the_documentation_works(monkeypatch):
    monkeypatch.setattr(PARTS, "_entries", dict(PARTS._entries))
    text = (Path(__file__).parents[2] / "docs" / "profile.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "@part" in block)
    made = {}
    exec(code, made)
    with only(made["Copying"]):
        (row,) = Runner([NetworkSpec("linear-rnn", hidden_size=3)], Settings(quick=True)).run()
        section = made["Copying"]().section([row], [row["label"]])
    assert row["parts"]["copying"]["status"] == "done", row["parts"]["copying"]["reason"]
    assert section.figures[0].command == "mnemoscope measure copy-capacity linear-rnn --hidden 3 --seed 0"
