"""A page as `mnemoscope profile` makes it, of made-up numbers that look like the real ones."""

from __future__ import annotations

import dataclasses
import math
import random

from mnemoscope.report import (
    Column,
    Curves,
    Dot,
    Entry,
    Figure,
    Headline,
    Mark,
    Page,
    Plane,
    Ranked,
    Score,
    Section,
    Series,
    Statement,
    Table,
    Value,
)

HOSTILE = '</script><img src=x onerror="window.hacked=1">'

# label, rate of forgetting per step, total of Fisher memory, spectral radius
NETWORKS = {
    "mine": ("nnrnn", 0.035, 41.2, 1.06),
    "rnn": ("rnn", 0.62, 3.4, 0.58),
    "irnn": ("irnn", 0.21, 9.8, 1.0),
    "orth-rnn": ("orth-rnn", 0.0157, 63.9, 1.0),
    "scornn": ("scornn", 0.019, 58.1, 1.0),
    "exprnn": ("exprnn", 0.0171, 61.5, 1.0),
    "lstm": ("lstm", 0.29, 8.1, 0.62),
    "gru": ("gru", 0.33, 6.6, 0.55),
    "linear-rnn": ("linear-rnn", 0.11, 14.9, 0.9),
}


def page(subject: str = "nnrnn", detail: str = "hidden 64 · 4,480 parameters") -> Page:
    """Return the page of one network, by whatever name, beside eight references."""
    names = {**NETWORKS, "mine": (subject, *NETWORKS["mine"][1:])}
    entries = [
        Entry(key=key, label=label, role="subject" if key == "mine" else "reference", detail=detail)
        for key, (label, *_) in names.items()
    ]
    return Page(
        title=subject,
        subtitle="Memory profile of a non-normal recurrent network with 64 units and 4,480 parameters, "
        "initialised weights, beside eight references at equal parameters.",
        entries=entries,
        summary=(
            Headline(value="41.2", unit="of 64", meaning="Fisher memory, the signal its state keeps"),
            Headline(value="20", unit="steps", meaning="until half of that memory is gone"),
            Headline(value="0.97", unit="of bound", meaning="linear memory capacity used"),
            Headline(value="\u22120.035", unit="nats/step", meaning="growth of gradients, going back"),
        ),
        verdict=VERDICT,
        sections=[_fisher(names), _gradients(names), _spectrum(names), _separation()],
        absent=[
            ("Exact separation rank", "the network is not polynomial: its activation is modReLU"),
            ("Trained weights", "no file of weights was given; --weights takes one"),
        ],
        methods="Memory was measured with Mnemoscope 0.1.0. The Fisher memory curve was computed by Monte Carlo over "
        "256 trajectories of 128 steps at noise variance 1, for the unit input direction that maximises its total; "
        "intervals are 95% t-intervals over the seeds 0, 1 and 2.",
        references=("ganguli2008", "kerg2019"),
        command="mnemoscope profile nnrnn --hidden 64 --html nnrnn.html",
        facts={"Mnemoscope": "0.1.0", "torch": "2.13.0", "Seeds": "0, 1, 2", "Date": "2026-11-16", "Threads": "2"},
    )


def scored_page() -> Page:
    """Return the same page with a scorecard of nine lines, the most that there are."""
    axes = ("remembering long", "remembering under noise", "plain memory", "products of inputs", "gradients")
    axes += ("tying start to end", "cost per step", "tracking", "share of the state used")
    words = ("strong", "weak", "average", "uncertain", "", "strong", "average", "weak", "uncertain")
    others = [key for key in NETWORKS if key != "mine"]
    scores = tuple(
        Score(
            name=name,
            word=word,
            value=">= 209" if i == 0 else f"{1.5 * i:.2f}",
            between="window 512" if i == 0 else f"{1.4 * i:.2f} to {1.6 * i:.2f}",
            unit="nats per step" if i == 4 else "steps",
            sentence=f"Half of what it knows is about inputs at most {i} steps old: rank 2 to 4 of 9.",
            place=i / 8,
            lower=None if i == 0 else max(0, i / 8 - 0.1),
            upper=None if i == 0 else min(1, i / 8 + 0.1),
            open_ended=i == 0,
            dots=tuple(Dot(entry=key, place=k / 7, text=f"{k}.0 (0.9 to 1.1)") for k, key in enumerate(others)),
            evidence="fisher",
        )
        for i, (name, word) in enumerate(zip(axes, words, strict=True))
    )
    return dataclasses.replace(
        page(),
        summary=(),
        verdict=(),
        read_as="read as NNRNN, recurrent, 1 input a step, a state of 64 numbers; forms agree to 3e-7",
        sentence="Among 8 networks of about 4,480 parameters, nnrnn is strong at remembering long and tying start to "
        "end, weak at remembering under noise and tracking; average or uncertain at the rest.",
        scores=scores,
        score_note="Initial weights of 5 seeds; training changes what depends on them. Dots: 8 references.",
        first="fisher-curve",
        advice=("For remembering under noise, try exprnn: 40 instead of 3.",),
    )


VERDICT = (
    Statement(
        text="Remembers for long rather than much: of 9 networks it is third in half-life and fourth in total memory.",
        tone="neutral",
        confidence="From initial weights of 3 seeds.",
        lead=True,
    ),
    Statement(
        text="Keeps a signal for 20 steps before half of it is gone, against 1 to 2 steps for lstm and gru.",
        tone="good",
        confidence="Very sure: 3 of 3 seeds, interval 18.9 to 21.1 steps.",
        evidence=("fisher",),
    ),
    Statement(
        text="Gradients shrink by 3.4% per step back: after 100 steps 3.0% of their norm is left.",
        tone="good",
        confidence="Sure: 95% interval 2.2% to 4.1%.",
        evidence=("gradients",),
    ),
    Statement(
        text="Holds less in total than an orthogonal network of the same size: 41.2 against 63.9.",
        tone="bad",
        confidence="Very sure: the intervals are 18 apart.",
        evidence=("fisher", "spectrum"),
    ),
    Statement(
        text="If the task needs more than 60 steps of memory, try orth-rnn or exprnn at the same size first.",
        tone="neutral",
        confidence="From untrained weights; training can change it.",
        evidence=("fisher", "gradients"),
    ),
)


def _fisher(names: dict) -> Section:
    lags = list(range(128))
    series = []
    for number, (key, (_, rate, total, _)) in enumerate(names.items()):
        noise = random.Random(number)
        start = total * (1 - math.exp(-rate))
        y = [start * math.exp(-rate * k + 0.04 * noise.gauss(0, 1)) for k in lags]
        band = {"lower": [0.85 * v for v in y], "upper": [1.18 * v for v in y]} if key == "mine" else {}
        series.append(Series(entry=key, x=lags, y=y, **band))
    curve = Figure(
        name="fisher-curve",
        title="How much of an input k steps ago is still in the state",
        drawing=Curves(
            series=series,
            x_title="lag k (steps)",
            y_title="Fisher memory J(k)",
            log_y=True,
            marks=(Mark(kind="y", value=0.01, label="1% of the first step"),),
            decades=6,
        ),
        alt="Nine falling curves. The orthogonal networks fall slowest, the plain rnn is gone after twenty steps.",
        how="Monte Carlo over 256 trajectories in float64, noise variance 1, best unit input direction; "
        "mean over 3 seeds with the 95% interval.",
        command="mnemoscope measure network-fisher --network nnrnn --hidden 64 --seed 0",
        references=("ganguli2008",),
    )
    total = Figure(
        name="fisher-total",
        title="Total memory, beside networks of the same size",
        drawing=Ranked(
            values=[
                Value(entry=key, value=total, lower=0.93 * total, upper=1.07 * total)
                for key, (_, _, total, _) in names.items()
            ],
            title="Total Fisher memory",
            better="higher",
            marks=(Mark(kind="x", value=64, label="bound N = 64"),),
        ),
        alt="Orthogonal networks come near the bound of 64; nnrnn reaches 41; lstm and gru stay below 10.",
        how="Sum of the curve above over all lags. No network with N units exceeds N.",
        command="mnemoscope measure network-fisher --network nnrnn --hidden 64 --seed 0 --json",
        references=("ganguli2008",),
    )
    return Section(
        name="fisher",
        title="Fisher memory",
        headline=Headline(value="20", unit="steps", meaning="after which half of the memory is gone"),
        text=(
            "Fisher memory says how well an input k steps ago could be estimated from the state.",
            "Noise of variance 1 acts on every unit. The total cannot exceed the number of units.",
        ),
        figures=[curve, total],
        tables=[_fisher_table(names)],
        notes=("The total is a lower bound where the curve was cut at 128 lags.",),
    )


def _fisher_table(names: dict) -> Table:
    rows = [
        [label, 64, 4480, total, math.log(2) / rate, None if key == "gru" else 1 / rate]
        for key, (label, rate, total, _) in names.items()
    ]
    return Table(
        name="fisher-numbers",
        title="Fisher memory at equal parameters",
        columns=[
            Column(title="Network", numeric=False),
            Column(title="Units", numeric=True),
            Column(title="Parameters", numeric=True),
            Column(title="Total", numeric=True),
            Column(title="Half-life", numeric=True, unit="steps"),
            Column(title="Reach", numeric=True, unit="steps"),
        ],
        rows=rows,
        note="Parameters without embedding and readout. Mean over 3 seeds.",
        highlight=0,
    )


def _gradients(names: dict) -> Section:
    lags = list(range(0, 201, 2))
    series = [
        Series(entry=key, x=lags, y=[math.exp(-rate * k) for k in lags]) for key, (_, rate, _, _) in names.items()
    ]
    ranked = [
        Value(entry=key, value=math.nan if key == "irnn" else -rate, lower=-1.1 * rate, upper=-0.9 * rate)
        for key, (_, rate, _, _) in names.items()
    ]
    return Section(
        name="gradients",
        title="Gradients",
        headline=Headline(value="3.0%", unit="", meaning="of the gradient's norm is left 100 steps back"),
        text=("What a loss at the last step can still teach the network about the steps before it.",),
        figures=[
            Figure(
                name="gradient-norms",
                title="Gradient norm, going back in time",
                drawing=Curves(
                    series=series, x_title="steps back", y_title="norm relative to the last step", log_y=True
                ),
                alt="Straight falling lines on a logarithmic axis, steepest for the plain rnn.",
                how="Backward pass through 200 steps of white noise, geometric mean over 32 sequences.",
                command="mnemoscope measure gradients --network nnrnn --hidden 64 --length 200",
            ),
            Figure(
                name="gradient-rate",
                title="Rate of vanishing",
                drawing=Ranked(values=ranked, title="Rate", unit="nats per step back", better="higher"),
                alt="Rates between \u22120.62 for rnn and \u22120.016 for orth-rnn.",
                how="Slope of the logarithm of the curve above, by least squares.",
                command="mnemoscope measure gradients --network nnrnn --hidden 64 --json",
            ),
        ],
    )


def _spectrum(names: dict) -> Section:
    points = {}
    for number, (key, (_, _, _, radius)) in enumerate(names.items()):
        noise = random.Random(100 + number)
        size = [radius if radius == 1.0 else radius * math.sqrt(noise.random()) for _ in range(32)]
        turn = [noise.uniform(0, math.pi) for _ in range(32)]
        points[key] = [
            complex(r * math.cos(a), s * r * math.sin(a)) for r, a in zip(size, turn, strict=True) for s in (1, -1)
        ]
    return Section(
        name="spectrum",
        title="Spectrum",
        headline=Headline(value="1.06", unit="", meaning="spectral radius; 1 keeps a signal, less forgets it"),
        text=("Eigenvalues of the state's map at rest.",),
        figures=[
            Figure(
                name="eigenvalues",
                title="Eigenvalues in the complex plane",
                drawing=Plane(
                    points=points, title="eigenvalue", marks=(Mark(kind="circle", value=1.0, label="unit circle"),)
                ),
                alt="Eigenvalues of orthogonal networks lie on the unit circle, those of the others within it.",
                how="Eigenvalues of the recurrent matrix, or of the state's Jacobian at rest where there is none.",
                command="mnemoscope measure spectrum --network nnrnn --hidden 64",
                references=("kerg2019",),
            )
        ],
    )


def _separation() -> Section:
    horizons = [2, 4, 6, 8, 10]
    growth = {"mine": [2, 9, 60, 420, 2900], "lstm": [2, 8, 55, 380, math.inf], "rnn": [2, 4, 8, 16, 32]}
    bound = Mark(kind="xy", label="deep lower bound", x=horizons, y=[1, 3, 14, 70, 380])
    return Section(
        name="separation",
        title="Separation rank",
        headline=Headline(
            value="420", unit="at T = 8", meaning="ways to tie the first half of a sequence to the second"
        ),
        text=("How strongly the output can tie the beginning of a sequence to its end.",),
        figures=[
            Figure(
                name="separation-rank",
                title="Separation rank by horizon",
                drawing=Curves(
                    series=[Series(entry=key, x=horizons, y=y) for key, y in growth.items()],
                    x_title="horizon T (steps)",
                    y_title="soft rank",
                    log_y=True,
                    points=True,
                    marks=(bound,),
                ),
                alt="The rank grows exponentially for nnrnn and lstm and slowly for rnn.",
                how="Singular values above 1% of the largest, of the grid tensor matricised start against end.",
                command="mnemoscope measure separation-rank --network nnrnn --hidden 64 --horizon 8",
            )
        ],
    )


def crowded() -> Page:
    """A page whose chart has four marks close to each other."""
    marks = tuple(Mark(kind="x", label=f"limit {k}", value=50.0 + k) for k in range(4))
    series = Series(entry="a", x=[10, 40, 53, 100], y=[1.0, 0.9, 0.1, 0.1])
    drawing = Curves(series=[series], x_title="x", y_title="y", marks=marks, points=True)
    return _one_chart("crowded", drawing, ("a",))


def vanished() -> Page:
    """A page with a curve that lies below the floor of its chart from the first point on."""
    curves = {"a": [1.0, 0.5, 0.1], "gone": [1e-200, 1e-210, 1e-220]}
    series = [Series(entry=key, x=[1, 2, 3], y=y) for key, y in curves.items()]
    return _one_chart("vanished", Curves(series=series, x_title="x", y_title="y", log_y=True, decades=6), tuple(curves))


def _one_chart(name: str, drawing: Curves, keys: tuple[str, ...]) -> Page:
    figure = Figure(name=name, title=name, drawing=drawing, alt="A chart.", how="By hand.", command="")
    entries = [Entry(key=key, label=key, role="reference" if i else "subject") for i, key in enumerate(keys)]
    return Page(title=name, subtitle="", entries=entries, sections=[Section(name="one", title="One", figures=[figure])])
