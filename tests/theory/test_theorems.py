"""Every theorem: confirmed by its live check, refuted when what it is about is changed, named with its source."""

import re

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope import measures, nn, tasks, theory
from mnemoscope.core.errors import UserError
from mnemoscope.core.references import REFERENCES
from mnemoscope.theory.theorems import SEVERITIES, STATUSES, THEOREMS, Instance, Verdict
from mnemoscope.theory.theorems import theorem as declare

SAYS_NOTHING_OF_A_NETWORK = {
    "erratum of a formula, a number or a sentence": {
        *(name for name in THEOREMS if THEOREMS[name].severity and not THEOREMS[name].topic)
    },
    "about stacks of two kinds of layers, of which none is here": {"tracking-mixed-layers"},
    "about sizes that others are compared with": {
        "kerg-parameter-counts",
        "matrix-table-1",
        "depth-theorem-1",
        "depth-theorem-2",
    },
    "about matrix networks and queues, which bring their own": {
        name for name in THEOREMS if name.startswith(("matrix-", "queue-"))
    },
    "a step on the way to one that does": {
        "kerg-no-interference",
        "kerg-feedback-line",
        "kerg-polynomial-powers",
        "kerg-attention-paths",
        "kerg-uniform-attention-depth",
        "kerg-scornn-gradient",
        "state-size-and-separation-rank",
        "ziv-attaining-weights",
        "ziv-claim-3",
        "ziv-min-cut",
        "ziv-tensor-network",
        "tt-cp-interval",
    },
}


@pytest.mark.parametrize("name", THEOREMS.names())
def test_confirmed_at_a_seed_that_it_was_not_written_with(name):
    verdict = theory.check(name, seed=7)
    assert verdict.confirmed is True, verdict.evidence
    assert verdict.cases > 0
    assert "\n" not in verdict.evidence


def test_each_says_what_it_is_where_it_stands_and_what_is_tested(every):
    every({name: THEOREMS[name] for name in THEOREMS}, says_what_it_is)


def says_what_it_is(found):
    assert found.reference in REFERENCES or found.source.startswith("Mnemoscope")
    assert re.search(r"(19|20)\d\d|^Mnemoscope", found.source), found.source
    assert found.statement.endswith(".")
    assert found.tested.endswith(".")
    assert found.right.endswith(".") == bool(found.right)
    assert (found.status == "false") == bool(found.right) == (found.severity in SEVERITIES)
    assert found.proof or found.reference or found.status == "measured"  # who else has proved it?
    assert found.status in STATUSES
    assert bool(found.topic) == (found.instance is not None) == (found.speaks_of is not None)


def test_every_theorem_speaks_of_networks_or_has_a_reason_not_to():
    silent = {name for name in THEOREMS if not THEOREMS[name].topic}
    assert silent == set().union(*SAYS_NOTHING_OF_A_NETWORK.values())


def scaled(function, **changes):
    """Return a measure whose result has some numbers multiplied."""

    def wrong(*arguments, **options):
        found = function(*arguments, **options)
        for name, factor in changes.items():
            object.__setattr__(found, name, getattr(found, name) * factor)
        return found

    return wrong


def accepts_everything(function):
    def wrong(U, V, W, **options):
        return function(U / 9, V, W, **options)

    return wrong


def times(factor):
    """Return a change of a formula: its result multiplied, or each of a tuple's entries."""

    def change(function):
        def wrong(*arguments, **options):
            found = function(*arguments, **options)
            return type(found)(*(factor * part for part in found)) if isinstance(found, tuple) else factor * found

        return wrong

    return change


formulas = theory.formulas
attention, cost = theory.theorems.attention, theory.theorems.cost
tracking, forgetting = theory.theorems.tracking, theory.theorems.forgetting
REFUTATIONS = {
    # theorem: what is changed, from right to wrong
    "capacity-by-regression": (measures, "memory_capacity", lambda f: scaled(f, curve=0.8)),
    "capacity-eigenvalues": (formulas.capacity, "ring_capacity", times(0.99)),
    "capacity-rank": (measures, "memory_capacity", lambda f: scaled(f, total=1.01)),
    "depth-copy-all-inputs": (formulas.copying, "copy_limit", lambda f: lambda *size: max(f(*size) - 1, 0)),
    "depth-critical-width": (formulas.copying, "critical_width", times(1.001)),
    "depth-evaluation-sets": (cost, "LagCopy", lambda f: lambda lag, length: f(lag=0, length=length)),
    "depth-polynomial-order": (formulas.degree, "birnn_degree", times(2)),
    "depth-theorem-1": (formulas.copying, "copy_limit", lambda f: lambda *size: max(f(*size) - 1, 0)),
    "depth-theorem-4": (formulas.degree, "cp_image_dimension", times(2)),
    "gradient-contraction": (measures, "gradient_norms", lambda f: scaled(f, log_norms=-1)),
    "gradient-norm": (measures, "gradient_norms", lambda f: scaled(f, log_norms=1.5)),
    "kerg-amplification-bound": (formulas.fisher, "amplification_bound", times(0.9)),
    "kerg-delay-line": (formulas.fisher, "delay_line_curve", times(1.001)),
    "kerg-fisher-trace": (measures, "fisher_memory", lambda f: scaled(f, spatial=1.001)),
    "kerg-corelnet-decoder": (nn, "create", lambda f: lambda name, **o: f(name, **o, matrix="diff")),
    "kerg-figure-b-1": (nn, "create", lambda f: lambda name, **o: f("rellstm", **o)),
    "kerg-omega-partitions": (attention, "_deltas", lambda f: lambda powers: [2 * delta for delta in f(powers)]),
    "kerg-parameter-counts": (cost, "_count", times(1.01)),
    "kerg-polynomial-gradients": (measures, "gradient_norms", lambda f: scaled(f, log_norms=1.5)),
    "kerg-polynomial-powers": (formulas.gradients, "triangular_power_entry", times(2)),
    "kerg-relevancy-screening": (nn, "create", lambda f: lambda name, **o: f(name, **o | {"buffer": 2})),
    "kerg-sparse-attention-bound": (formulas.attention, "sparse_attention_bound", times(2)),
    "kerg-uniform-attention-growth": (formulas.attention, "uniform_attention_exponent", times(1.1)),
    "kreiss-matrix-theorem": (measures, "spectrum", lambda f: scaled(f, kreiss=1.001)),
    "matrix-covariance": (measures, "matrix_fisher_memory", lambda f: scaled(f, total=1.001)),
    "matrix-memory-count": (
        cost,
        "_matrix_counts",
        lambda f: lambda: dict(zip(f(), reversed(f().values()), strict=True)),
    ),
    "matrix-normal-formula": (formulas.matrix_fisher, "normal_matrix_fisher_total", times(1.001)),
    "matrix-table-1": (cost, "_matrix_counts", lambda f: lambda: f() | {"MatNTM": [1, 2]}),
    "matrix-stability": (measures, "matrix_fisher_memory", accepts_everything),
    "sharper-triangular-bound": (formulas.fisher, "triangular_fisher_bounds", times(3)),
    "tracking-commuting-layer": (forgetting, "_order_seen", lambda _: lambda *a: 1.0),
    "tracking-fixed-transitions": (forgetting, "_forgotten", lambda _: lambda *a: 1.0),
    "tracking-mixed-layers": (forgetting, "_parity_told", lambda _: lambda actions, bits: 3 not in actions),
    "tracking-one-real-layer": (tracking, "_periods", lambda _: lambda *a, **o: [3]),
    "tracking-positive-eigenvalues": (tracking, "_periods", lambda _: lambda *a, **o: [2, 2, 2][: a[1]]),
    "tracking-real-eigenvalues": (tracking, "_periods", lambda _: lambda *a, **o: [2, 3, 3][: a[1]]),
    "tt-generic-rank": (formulas.tensor_train, "generic_odd_even_rank", times(2)),
    "tt-theorem-1": (formulas.tensor_train, "odd_even_bound", lambda f: lambda *size: f(*size) ** 3),
    "ziv-claim-4": (formulas.rac_graph, "network_leaves", times(2)),
    "ziv-orthogonal-relu": (formulas.gradients, "orthogonal_relu_bound", times(0.5)),
    "ziv-similarity-grid": (tasks, "create", lambda f: lambda name, **o: f(name, **{**o, "length": 90})),
}


@pytest.mark.parametrize("name", REFUTATIONS)
def test_a_check_can_fail(name, monkeypatch):
    where, function, change = REFUTATIONS[name]
    monkeypatch.setattr(where, function, change(getattr(where, function)))
    verdict = theory.check(name)
    assert verdict.confirmed is False, verdict.evidence
    assert not verdict.evidence.startswith("the check broke")


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("matrix-normal-capacity", "normal"),  # with general matrices the relative capacity is not one
        ("kerg-fisher-normal", "normal"),
        ("lyapunov-eigenvalues", "general"),
    ],
)
def test_the_condition_of_a_theorem_is_needed(name, draw, monkeypatch):
    module = __import__(THEOREMS[name].evaluate.__module__, fromlist=["*"])
    if name == "lyapunov-eigenvalues":
        monkeypatch.setattr(module, "_linear", lambda W: ms.nn.LinearRNN(1, len(W), bias=False))
    else:
        monkeypatch.setattr(module, draw, lambda random, size, radius: np.triu(random.normal(size=(size, size)) / 3))
    assert theory.check(name).confirmed is False


def test_claims_are_chosen_by_status_and_severity():
    every = theory.claims()
    assert [each.name for each in every] == sorted(THEOREMS)
    false = theory.claims(status="false")
    assert {each.status for each in false} == {"false"}
    assert {each.severity for each in theory.claims("false", "wrong")} == {"wrong result", "wrong constant"}
    assert theory.claims("proved", "wrong") == []
    assert len(false) == sum(len(theory.claims(severity=kind)) for kind in SEVERITIES)
    with pytest.raises(UserError, match="status must be 'proved' or 'measured' or 'false', got 'wrong'"):
        theory.claims(status="wrong")
    with pytest.raises(UserError, match="severity must be"):
        theory.claims(severity="bad")
    with pytest.raises(UserError, match="did you mean 'kerg-alpha'"):
        theory.check("kerg-alhpa")


def test_a_theorem_of_a_network():
    found = THEOREMS["depth-copy-all-inputs"]
    linear = ms.nn.LinearRNN(2, 6)
    assert found.applies(linear)
    assert found.value(linear).value == 2
    assert not found.applies(ms.nn.LSTM(2, 6))
    with pytest.raises(UserError, match="says nothing of this network"):
        found.value(ms.nn.LSTM(2, 6))


def test_declaring_one(monkeypatch):
    monkeypatch.setattr(THEOREMS, "_entries", dict(THEOREMS._entries))

    @declare("ring", "white2004", "Eq. 3")
    def ring(seed):
        """A ring of n units has a capacity of n.

        Whatever its weight.

        Proof: by
        counting.

        Check: ten rings,
        all alike.
        """
        return Verdict(np.bool_(True), np.int64(10 + seed), "all alike")

    @ring.about("capacity", lambda s: s.name == "gru")
    def _(s):
        return Instance(f"Its capacity is {s.n}.", s.n, "exact")

    assert str(theory.check("ring", seed=2)) == "confirmed on 12 cases: all alike"
    assert str(ring) == "ring (White et al. 2004, Eq. 3): proved"
    assert ring.statement == "A ring of n units has a capacity of n. Whatever its weight."
    assert (ring.facts()["tested"], ring.facts()["proof"]) == ("ten rings, all alike.", "by counting.")
    assert ring.value(ms.nn.GRU(1, 4)).text == "Its capacity is 4."
    with pytest.raises(UserError, match="the claim name 'ring' is taken"):
        declare("ring", "", "")(lambda seed: Verdict(True, 1, ""))
    with pytest.raises(UserError, match="severity must be given together with 'Right:' in the docstring"):
        declare("other", "", "", severity="misprint")(lambda seed: Verdict(True, 1, ""))
    with pytest.raises(UserError, match="reference must be a key of the bibliography"):
        declare("other", "nobody1900", "")
    with pytest.raises(UserError, match="topic must be"):
        ring.about("weather", lambda s: True)


def test_a_check_that_breaks_confirms_nothing(monkeypatch):
    monkeypatch.setattr(THEOREMS["kerg-alpha"], "evaluate", lambda seed: 1 / 0)
    found = theory.check("kerg-alpha")
    assert (found.confirmed, found.cases) == (False, 0)
    assert found.evidence == "the check broke: ZeroDivisionError: division by zero"
