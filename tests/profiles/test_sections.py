"""The sections on networks whose numbers are known: delay lines, scaled rotations, products."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Context, all_sections
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.subject import facts_of

QUICK = Settings(quick=True, seeds=1)
TRAINED = {each.name for each in all_sections() if each.trains}


def linear(W, v):
    layer = ms.nn.LinearRNN(1, len(W), bias=False, dtype=torch.float64)
    layer.weight_hh_l0, layer.weight_ih_l0 = torch.tensor(W), torch.tensor(v)
    return layer


def delay_line(n):
    return linear(np.diag(np.ones(n - 1), -1), np.eye(n)[:, :1])


def run(name, network, **more):
    (section,) = [each for each in all_sections() if each.name == name]
    target = NetworkSpec(network, **more)
    context = Context(quick=True, facts=facts_of(target, target.build()))
    if not target.trained:
        context = Context(
            quick=True, facts=context.facts, rebuild=lambda width: target.replace(input_size=width).build()
        )
    return section.run(target.build(), context)


def values(found):
    return {name: each.value for name, each in found.scalars.items()}


def test_fisher_of_a_delay_line_is_harmonic():
    # J(k) = 1 / (k + 1) for k < N: noise of k + 1 steps has piled up on the unit that holds the input.
    found = values(run("fisher", delay_line(5)))
    assert found["total"] == pytest.approx(sum(1 / k for k in range(1, 6)))
    assert found["half_life"] == 1  # 1 + 1/2 of 2.28
    assert found["reach"] == 4


def test_fisher_without_any_information():
    found = run("fisher", linear(np.zeros((2, 2)), np.zeros((2, 1))))
    assert (found.scalars["half_life"].value, found.scalars["reach"].value) == (None, None)
    assert found.scalars["half_life"].note == "there is no information to halve"


def test_capacity_of_a_delay_line_is_its_length():
    found = run("capacity", delay_line(6))
    assert values(found) == pytest.approx({"linear": 6.0, "nonlinear": 0.0, "linear_share": 1.0, "reach": 5.0})
    assert found.data["exact"]


def test_capacity_that_cannot_be_estimated_is_not_given():
    found = run("capacity", "rac", hidden_size=64)
    assert found.scalars["linear"].value is None
    assert found.scalars["linear"].note.startswith("it cannot be estimated")


def test_gradients_of_a_scaled_rotation():
    turn = 0.5 * np.array([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]])
    found = values(run("gradients", linear(turn, np.ones((2, 1)))))
    assert found["rate"] == pytest.approx(-math.log(2))
    assert found["at_100"] == pytest.approx(-100 * math.log(2))
    assert found["lyapunov_max"] == pytest.approx(-math.log(2))
    assert (found["lyapunov_dimension"], found["near_zero"]) == (0.0, 0.0)


def test_gradients_that_vanish_exactly_have_a_note():
    found = run("gradients", delay_line(3))
    assert found.scalars["at_100"].value == -math.inf
    assert found.scalars["at_100"].note == "the gradient is exactly zero there"


def test_spectrum_of_a_jordan_block():
    found = values(run("spectrum", linear(np.array([[0.5, 0.0], [2.0, 0.5]]), np.ones((2, 1)))))
    assert (found["radius"], found["henrici"]) == pytest.approx((0.5, 2.0))
    assert found["henrici_relative"] == pytest.approx(2 / math.sqrt(4.5))
    assert found["amplification"] == pytest.approx(np.linalg.norm([[0.5, 0], [2, 0.5]], 2))


def test_spectrum_of_what_explodes_says_so():
    found = run("spectrum", linear(np.array([[1.5]]), np.ones((1, 1))))
    assert found.scalars["kreiss"].value == math.inf
    assert found.scalars["kreiss"].note == "it is infinite: the spectral radius is above 1"


def test_separation_of_a_product_network_is_exact_between_its_bounds():
    found = run("separation", "rac", hidden_size=5)
    network = NetworkSpec("rac", hidden_size=5, input_size=3).build()
    for index, steps in enumerate((4, 6, 8)):
        alone = ms.measures.separation_rank(network, steps, every=True)
        assert alone.lower <= found.scalars[f"rank_{steps}"].value == alone.rank <= alone.upper
        assert found.scalars[f"soft_{steps}"].value == pytest.approx(math.exp(alone.mean_entropy))
        assert (found.data["lower"][index], found.data["upper"][index]) == (alone.lower, alone.upper)
    assert found.data["exact"]
    assert "Built with 3 inputs instead of 1" in found.notes[0]


def test_separation_of_weights_of_its_own_takes_random_inputs():
    found = run("separation", torch.nn.GRU(1, 4))
    assert not found.data["exact"]
    assert found.data["input_size"] == 1
    assert 1 <= found.scalars["soft_8"].value <= 81


def test_the_card_counts():
    found = values(run("card", "lstm", hidden_size=4, input_size=3))
    assert found["parameters"] == 4 * 4 * (4 + 3) + 8 * 4
    assert (found["state_size"], found["multiply_adds"]) == (8, 4 * 4 * (4 + 3) + 3 * 4)
    grown = values(run("card", "rnn", hidden_size=8))
    assert (grown["growth_exponent"], grown["work_exponent"]) == pytest.approx((1, 0), abs=0.05)
    assert values(run("card", ms.nn.CP(2, 3, 4, 5)))["parameters"] > 0


def test_relations_are_all_that_decides_in_a_network_that_sees_nothing_else():
    # With the identity as its relation matrix, whatever the objects are, each row is sharp and no score can change.
    layer = ms.nn.create("corelnet", panels=9, answers=4)
    layer.relations = lambda z: torch.eye(9).expand(z.shape[1], 9, 9)
    found = run("relations", layer)
    assert (found.scalars["entropy"].value, found.scalars["sharpness"].value) == (0.0, 1.0)
    assert np.asarray(found.data["matrix"]).tolist() == np.eye(9).tolist()
    shares = [found.scalars[name].value for name in ("share", "agreement")]
    assert shares == pytest.approx([1, 1])
    assert found.scalars["change"].value == pytest.approx(0, abs=1e-6)


def test_a_relational_network_without_a_matrix_has_its_dependence():
    layer = ms.nn.create("relational-lstm", panels=9, answers=4)
    found = run("relations", layer)
    alone = ms.measures.relational_dependence(layer, examples=200)
    assert values(found) == pytest.approx(
        {name: getattr(alone, name) for name in ("share", "agreement", "change", "spread")}, abs=1e-6
    )
    assert "It has no relation matrix." in found.notes


def test_the_same_seed_gives_the_same_row_bit_for_bit():
    rows = [Runner([NetworkSpec("gru", hidden_size=3)], QUICK).run()[0].to_dict() for _ in range(2)]
    for row in rows:
        for part in row["parts"].values():
            part["seconds"] = 0
        row["parts"]["card"] = None  # times of steps are times
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ["rnn", "urnn", "2rnn", "cprnn"])
def test_every_part_runs_on_many_sorts_of_network(name):
    (row,) = Runner([NetworkSpec(name, hidden_size=4)], QUICK).run()
    assert {each.status for name, each in row.sections.items() if name not in TRAINED} == {"done"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in ms.nn.names("recurrent") if isinstance(ms.nn.get(name).small_sizes["hidden_size"], int)],
)
def test_every_part_runs_on_every_recurrent_network(name):
    (row,) = Runner([NetworkSpec(name, hidden_size=6)], QUICK).run()
    assert {each.status for name, each in row.sections.items() if name not in TRAINED} == {"done"}


def test_fisher_is_judged_under_noise_of_the_units_own_size():
    # A delay line driven by white noise has units of one variance v each: relative noise is noise of variance v.
    found = run("fisher", delay_line(5))
    ratio = found.scalars["total"].value / found.scalars["relative_total"].value
    assert ratio == pytest.approx(1.0, rel=0.2)
    assert found.scalars["relative_half_life"].value == 1
    assert found.scalars["relative_half_life"].at_least == ""
    long = run("fisher", "nnrnn", hidden_size=16)
    assert long.scalars["relative_half_life"].at_least == "window 256"
    assert found.scalars["mixture_total"].value > 0


def test_tracking_counts_what_no_theorem_rules_out():
    nonlinear, decaying, fixed = (run("tracking", name, hidden_size=4) for name in ("lstm", "mingru", "lru"))
    assert [values(each)["allowed"] for each in (nonlinear, decaying, fixed)] == [7, 1, 1]
    assert "Eigenvalues rule out nothing for it." in nonlinear.notes
    assert {each["theorem"] for each in fixed.data["excluded"]} == {"tracking-fixed-transitions"}
    # With one input all transitions of a RAC are multiples of one matrix; the section asks it with three.
    assert values(run("tracking", "rac", hidden_size=4))["allowed"] == 7


def test_remembrance_of_a_delay_line_is_its_length():
    found = run("remembrance", delay_line(6))
    assert 4 < values(found)["steps"] <= 6
    assert found.data["shares"][-1] == pytest.approx(0, abs=1e-12)
    turn = np.array([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]])
    assert run("remembrance", linear(turn, np.ones((2, 1)))).scalars["steps"].at_least == "window 64"


def test_the_glossary_in_the_docs_is_that_of_the_sections_and_the_atlas():
    root = Path(__file__).parents[2]
    script = runpy.run_path(str(root / "scripts" / "glossary"))
    assert (root / "docs" / "glossary.md").read_text(encoding="utf-8") == script["glossary"](), (
        "scripts/glossary --write writes it"
    )
    judged = [each.axis for one in all_sections() for each in one.quantities if each.axis]
    assert all(axis.remedy for axis in judged)


def test_the_band_of_a_share_stays_between_nothing_and_all():
    """Two seeds that differ have an interval many times as wide: a chart of shares showed nothing else."""
    from mnemoscope.profiles.results import merge, seed_result
    from mnemoscope.profiles.section import SECTIONS, Measurement

    section = SECTIONS["state"]()
    found = {
        seed: seed_result(section, Measurement(data={"share": shares}), 1.0)
        for seed, shares in enumerate(([0.1, 0.9], [0.9, 0.2]))
    }
    data = merge(section, found, 2).data
    assert data["share"] == [0.5, 0.55]
    assert min(data["share_lower"]) >= 0
    assert max(data["share_upper"]) == 1
