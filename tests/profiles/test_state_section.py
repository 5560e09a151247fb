"""Sections about the state and about forms: their numbers are those of their measures, and what is unsure is said."""

import pytest
import torch

import mnemoscope as ms
from mnemoscope.profiles.page import read_as
from mnemoscope.profiles.row import NetworkFacts
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import Context, all_sections
from mnemoscope.profiles.verdict import verdict

SECTIONS = {each.name: each for each in all_sections()}


def context(network, **more):
    facts = NetworkFacts(kind="recurrent", state_size=network.state_size, input_size=network.input_size)
    return Context(facts=facts, **more)


def test_the_share_of_the_state_is_that_of_the_measure():
    network = ms.nn.LSTM(1, 8, generator=torch.Generator().manual_seed(0))
    found = SECTIONS["state"].run(network, context(network))
    alone = ms.measures.effective_state_size(network, horizon=64, trajectories=2)
    assert found.scalars["used_share"].value == pytest.approx(alone.total / 16)
    assert found.scalars["used_share"].at_least == ""
    assert found.scalars["bits"].value == 16 * 32
    assert [each["name"] for each in found.data["tensors"]] == ["h", "c"]
    assert "order_99" not in found.scalars, "it is not linear"


def test_a_linear_network_has_its_hankel_orders():
    network = ms.nn.LinearRNN(1, 6, generator=torch.Generator().manual_seed(0))
    found = SECTIONS["state"].run(network, context(network))
    values = ms.measures.hankel_singular_values(network)
    assert found.scalars["order_99"].value == values.order(0.99)
    assert found.scalars["order_999"].value == values.order(0.999)


def test_a_window_too_short_for_the_state_gives_a_censored_number():
    network = ms.nn.LinearRNN(1, 300, generator=torch.Generator().manual_seed(0))
    section = SECTIONS["state"]
    (use, _) = section.calls(context(network, quick=True))
    assert use.options == {"horizon": 128, "trajectories": 1}
    found = section.run(network, context(network, quick=True))
    assert found.scalars["used_share"].at_least == "window 128"


class Late(ms.nn.RNN):
    """A network whose whole sequences forget the third input."""

    def run(self, x, state, lengths):
        return super().run(torch.cat([x[:2], 0 * x[2:3], x[3:]]), state, lengths)


def row_of(network):
    runner = Runner([ms.nn.NetworkSpec(network)], Settings(quick=True))
    runner.sections = tuple(SECTIONS[name] for name in ("parity", "state"))
    (row,) = runner.run()
    return row


def test_the_first_line_says_whether_forms_agree():
    assert "; forms agree to " in read_as(row_of(ms.nn.RNN(2, 4)))
    assert "over 65 steps" in read_as(row_of(ms.nn.RNN(2, 4)))
    bad = row_of(Late(2, 4))
    assert "; forms DIFFER: recurrent and steps differ by" in read_as(bad)
    assert bad.section("parity").scalars["disagreements"].value >= 2


def test_without_references_nothing_is_judged():
    """As long as no row of the atlas has the number, the scorecard shows it and withholds a word."""
    row = row_of(ms.nn.RNN(2, 4))
    (quantity,) = (each for each in SECTIONS["state"].quantities if each.axis is not None)
    found = verdict(row, [row_without_state()], [quantity])
    assert found.words() == {}
    assert found.to_dict()["axes"][0]["word"] is None


def row_without_state():
    runner = Runner([ms.nn.NetworkSpec(ms.nn.RNN(2, 3))], Settings(quick=True))
    runner.sections = (SECTIONS["parity"],)
    (row,) = runner.run()
    return row


def test_capacity_over_scales_is_flat_for_a_linear_network_and_its_rank_is_exact():
    network = ms.nn.LinearRNN(1, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.weight_hh_l0[:, 5] = network.weight_hh_l0[5] = 0
        network.weight_ih_l0[5] = 0
    found = SECTIONS["capacity-scale"].run(network, context(network, quick=True))
    assert found.scalars["rank"].value == 5, "one unit is reached by nothing"
    assert found.data["linear"] == pytest.approx(5)
    assert found.data["products"] == pytest.approx(0)


def test_capacity_over_scales_is_that_of_the_measure():
    network = ms.nn.RNN(1, 6, generator=torch.Generator().manual_seed(0))
    section = SECTIONS["capacity-scale"]
    found = section.run(network, context(network, quick=True))
    (plain, products) = section.calls(context(network, quick=True))
    alone = ms.measures.memory_capacity(network, **plain.options)
    assert found.data["linear"][[0, 1, 3, 4]] == pytest.approx(alone.totals)
    assert found.data["linear"][2] == pytest.approx(alone.total)
    both = ms.measures.memory_capacity(network, **products.options)
    assert found.data["products"][4] == pytest.approx(both.totals_by_degree[3, 1:].sum())
    assert found.data["linear"][0] > found.data["linear"][4] + 0.5, "large inputs cost plain memory"


def test_a_state_too_large_for_the_sweep_says_so():
    network = ms.nn.RNN(1, 300)
    assert "at most 256 numbers" in SECTIONS["capacity-scale"].reason_against(network, context(network))


def test_rounding_in_bfloat16_is_no_other_function():
    """The gradients of nnrnn's map part in bfloat16, which the notes say; its forms are one function all the same."""
    network = ms.nn.NetworkSpec("nnrnn", hidden_size=64).build()
    found = SECTIONS["parity"].run(network, context(network))
    assert found.data["differences"] == []
    assert found.scalars["disagreements"].value == 0
    assert {row[1] for row in found.data["rows"]} == {"float32", "float64", "bfloat16"}
    assert any("bfloat16" in note for note in found.notes)
