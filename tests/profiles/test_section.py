"""The table of sections: how one joins, in which order they are, and what a call runs."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.profiles import fake_sections
from tests.profiles.fake_sections import only

import mnemoscope as ms
from mnemoscope.core import registry as core_registry
from mnemoscope.core.errors import UserError
from mnemoscope.measures import Dynamics
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Call, Context, ProfileSection, all_sections, section
from mnemoscope.profiles.comparison import Comparison
from mnemoscope.profiles.page import build_page, keyed
from mnemoscope.profiles.row import NetworkFacts
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import SECTIONS, judged_quantities
from mnemoscope.profiles.verdict import scorecard, verdict


def test_the_parts_of_the_contract_are_there_in_their_order():
    names = [each.name for each in all_sections()]
    ours = ["card", "relations", "theory", "fisher", "capacity", "gradients", "spectrum", "separation"]
    assert [name for name in names if name in ours] == ours


def test_a_part_joins_by_registering_itself(monkeypatch):
    monkeypatch.setattr(SECTIONS, "_entries", dict(SECTIONS._entries))

    @section("trained-capacity", title="Trained capacity", order=35)
    class Trained(ProfileSection):
        def seconds(self, network, context):
            return 0.0

        def run(self, network, context):
            raise NotImplementedError

    names = [each.name for each in all_sections()]
    assert names.index("fisher") < names.index("trained-capacity") < names.index("capacity")
    with pytest.raises(UserError, match="the section name 'trained-capacity' is taken"):
        section("trained-capacity", title="Again", order=1)(Trained)


def test_other_packages_announce_theirs_by_entry_points(monkeypatch):
    monkeypatch.setattr(SECTIONS, "_entries", dict(SECTIONS._entries))
    monkeypatch.setattr(SECTIONS, "_plugins_loaded", False)
    monkeypatch.setattr(fake_sections, "Plugin", fake_sections.make("plugin", 5, fake_sections.number()), raising=False)
    point = EntryPoint("plugin", f"{fake_sections.__name__}:Plugin", "mnemoscope.sections")
    monkeypatch.setattr(core_registry, "entry_points", lambda group: [point] if group == "mnemoscope.sections" else [])
    assert all_sections()[0].name == "plugin"


@pytest.mark.parametrize(
    ("network", "against"),
    [
        (ms.nn.RNN(1, 2), None),
        (ms.nn.RNN(1, 2, bidirectional=True), "it needs a causal network, and this one reads the future"),
        (ms.nn.CP(2, 2, 4, 2), "it takes networks of kind recurrent, and this one is of kind classifier"),
    ],
)
def test_a_part_says_why_it_does_not_apply(network, against):
    (fisher,) = [each for each in all_sections() if each.name == "fisher"]
    assert fisher.reason_against(network, Context()) == against


def test_a_call_runs_the_measure_with_the_seed_where_it_takes_one():
    layer = ms.nn.RNN(1, 3)
    options = {"horizon": 20, "trajectories": 2}
    assert (
        Call("gradients", options)(layer, Context(seed=7)).rate
        == ms.measures.gradient_norms(layer, **options, seed=7).rate
    )
    assert Call("spectrum")(layer, Context(seed=7)).radius == ms.measures.spectrum(layer).radius


def test_the_section_of_the_documentation_is_in_every_table(monkeypatch):
    """One declaration, one file: page, ranking, summary, comparison, verdict and atlas know the number."""
    monkeypatch.setattr(SECTIONS, "_entries", dict(SECTIONS._entries))
    text = (Path(__file__).parents[2] / "docs" / "profile.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "@section" in block)
    made = {}
    exec(code, made)
    with only(made["Copying"]):
        specs = [NetworkSpec("linear-rnn", hidden_size=size) for size in (3, 5)]
        rows = Runner(specs, Settings(quick=True)).run()
        sections = all_sections()
    first, second = keyed(rows)
    assert first.section("copying").done, first.section("copying").reason
    assert first.section("copying").scalars["reach"].unit == "steps"
    compared = Comparison(sections, [first, second])
    page = build_page(sections, [first, second], (), comparison=compared, command="", about_references="")
    (figure,) = page.sections[-1].figures
    assert figure.command.startswith("mnemoscope measure copy-capacity linear-rnn --hidden 3 --seed 0")
    assert figure.drawing.better == "higher"
    assert [line.title for line in compared.lines] == ["copying exactly (steps)"]
    said = verdict(first, [second], judged_quantities(sections))
    (score,) = scorecard(first, said)
    assert "It copies inputs up to" in score.sentence


def test_estimates_are_those_of_the_measures():
    """Fisher memory of large states is found in a Krylov space: its time grows as that of a step, S to S^2."""
    context = Context(facts=NetworkFacts(state_size=64, input_size=1))
    for each in all_sections():
        if each.calls(context) and each.name != "trained":
            stated = [
                ms.measures.get(call.measure).seconds(64, call.input_size or 1, **call.options)
                for call in each.calls(context)
            ]
            assert each.seconds(None, context) == sum(stated), each.name
    (fisher,) = [each for each in all_sections() if each.name == "fisher"]
    large, larger = (Context(facts=NetworkFacts(state_size=size)) for size in (1024, 2048))
    assert 1.9 < fisher.seconds(None, larger) / fisher.seconds(None, large) <= 4


def test_a_memory_that_grows_is_left_to_the_budget():
    """Its state of thousands of numbers is mostly slots: what a step takes says how long, and not their square."""
    context = Context(facts=NetworkFacts(input_size=1, hidden_size=64), grown=25_728)
    memory = ms.nn.create("memlstm", 1, 2)
    assert [each.reason_against(memory, context) for each in all_sections() if each.name == "gradients"] == [None]


def test_a_profile_copies_each_set_of_weights_once(monkeypatch):
    prepared = []
    of = Dynamics.of.__func__
    monkeypatch.setattr(
        Dynamics, "of", classmethod(lambda cls, network, *a, **k: prepared.append(network) or of(cls, network, *a, **k))
    )
    settings = Settings(quick=True)
    Runner([NetworkSpec("rnn", hidden_size=4)], settings).run()
    copied = [each for each in prepared if not isinstance(each, Dynamics)]
    # Of each seed the network, and the one that is rebuilt with other inputs.
    assert len({id(each) for each in copied}) == len(copied) == 2 * len(settings.seeds_of(trained=False))
