"""Ladder of state tracking: how long a trained network follows groups and brackets, beyond the length of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import UserError, expected, nearest, positive_int
from mnemoscope.core.intervals import Interval, mean_interval, wilson
from mnemoscope.core.result import Result, result
from mnemoscope.core.seeds import stream
from mnemoscope.report import chart
from mnemoscope.tasks import Task, create
from mnemoscope.training.capacities.inputs import Builder, Network, checked_seeds, checked_training, maker, share
from mnemoscope.training.fitting import Run
from mnemoscope.training.model import Model
from mnemoscope.training.series import Lines, Series, checked_minutes, rates_of

__all__ = ["RUNGS", "Ladder", "climb", "ladder", "prefix_scores", "rung_task"]

RUNGS = ("Z2", "Z3", "Z60", "S3", "A5", "S5", "dyck")
"""Groups, from parity to one that is not solvable, and brackets of two kinds."""

RECIPE: dict[str, Any] = {"optimizer": "adam", "lr": 3e-3, "schedule": "cosine", "clip_norm": 1.0}
"""Of every training that asks for nothing else. Constant rates, and an end as soon as the training's own length is
solved, leave states that drift: a network of 64 units that solves 9 steps of parity so solves 64 with this."""

_LOOKS = 20
"""Validations of a training."""
_CHUNK = 64
"""Sequences that are tested at once."""


@result
class Ladder(Result):
    """How long each rung is solved by a population of trained networks.

    Attributes
    ----------
    network
        What was trained, in words.
    rungs
        Those that were trained, in their order.
    length, longest
        Of the sequences in training, and in the tests.
    lengths
        At which scores are kept.
    scores
        Accuracy over the first so many steps, by rung, seed and length; NaN where training diverged.
    solved
        By rung and seed the longest length whose score reaches the criterion; 0 for none.
    mean, lower, upper
        Of it over seeds, with the 95% interval.
    rate, rate_lower, rate_upper
        By rung the share of seeds that solve the longest length, with Wilson's interval.
    learned
        By rung the share of seeds that solve the length of training.
    rates
        By rung and seed the learning rate that was best on validation, of those given.
    seeds, criterion
        Of the trainings; the score that solves a length.
    complete, reason
        Whether all rungs were trained, else what ended it.
    seconds, parameters
        Of training in all; of the largest network.
    """

    measure: ClassVar[str] = "ladder"
    references: ClassVar[tuple[str, ...]] = ("liu2023", "grazzi2025", "hewitt2020")

    network: str
    rungs: tuple[str, ...]
    length: int
    longest: int
    lengths: Int[np.ndarray, " lengths"]
    scores: Float[np.ndarray, "rungs seeds lengths"]
    solved: Int[np.ndarray, "rungs seeds"]
    mean: Float[np.ndarray, " rungs"]
    lower: Float[np.ndarray, " rungs"]
    upper: Float[np.ndarray, " rungs"]
    rate: Float[np.ndarray, " rungs"]
    rate_lower: Float[np.ndarray, " rungs"]
    rate_upper: Float[np.ndarray, " rungs"]
    learned: Float[np.ndarray, " rungs"]
    rates: Float[np.ndarray, "rungs seeds"]
    seeds: tuple[int, ...]
    criterion: float
    complete: bool
    reason: str
    seconds: float
    parameters: int

    def __str__(self) -> str:
        found = ", ".join(
            f"{rung} {mean:.4g}" + (" (all it was tested at)" if mean == self.longest else "")
            for rung, mean in zip(self.rungs, self.mean, strict=True)
        )
        end = "" if self.complete else f"; {self.reason}"
        return f"{self.network} trained at length {self.length} solves, of {self.longest}: {found or 'nothing'}{end}"

    def plot(self) -> chart.Chart:
        """Draw the scores against length, the mean over seeds, with the length of training."""
        from mnemoscope.report import Mark

        series = {
            rung: (self.lengths, np.nan_to_num(scores).mean(0))
            for rung, scores in zip(self.rungs, self.scores, strict=True)
        }
        return chart.lines(
            series,
            x="length",
            y="accuracy, mean over seeds",
            title=f"{self.network}: trained at {self.length}",
            log_x=True,
            marks=(Mark(kind="x", label="trained", value=float(self.length)),),
        )


def rung_task(rung: str, length: int, depth: int = 4) -> Task:
    """Return the task of a rung: a group's name, or ``"dyck"``, brackets of two kinds to a depth."""
    if rung not in RUNGS:
        near = nearest(rung, RUNGS) if isinstance(rung, str) else None
        raise expected("a rung", f"one of {', '.join(RUNGS)}" + (f" (did you mean {near!r}?)" if near else ""), rung)
    if rung == "dyck":
        return create("dyck", depth=depth, kinds=2, length=length)
    return create("group-composition", group=rung, length=length)


def ladder(
    network: Network,
    *,
    rungs: Sequence[str] = RUNGS,
    length: int = 16,
    factor: int = 8,
    depth: int = 4,
    hidden_size: int | None = None,
    num_layers: int = 1,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] | None = None,
    criterion: float = 0.99,
    seeds: int | Sequence[int] = 3,
    iterations: int = 5000,
    examples: int = 256,
    minutes: float | None = None,
    folder: str | Path | None = None,
    on_rung: Callable[[Mapping[str, Any]], None] | None = None,
    **training: Any,
) -> Ladder:
    """Train a network on groups and brackets at one length, and test it on sequences up to eight times as long.

    At every step the network says the product of all elements of the group so far (or the bracket that would close).
    A length counts as solved when the accuracy over its steps reaches the criterion; the tests of all lengths are the
    beginnings of the same longest sequences.

    Parameters
    ----------
    network
        As in `mnemoscope.training.capacity`; each rung has its own input size.
    rungs
        Which, of `RUNGS`.
    length
        Of training.
    factor
        How many times longer the tests are.
    depth
        m of Dyck-(2, m).
    hidden_size, num_layers, parameters, count, options
        Of a network that is built, as in `capacity`.
    criterion
        The accuracy that solves a length.
    seeds
        How many, or which: one network each.
    iterations
        Of one training.
    examples
        Sequences of a test.
    minutes
        Of training in all; rungs that are not begun then are left out, which the result says.
    folder
        Keeps a record of every rung; the same call goes on where it was, to the same numbers.
    on_rung
        Is told of every rung when it is done.
    training
        Settings of `mnemoscope.training.fit`: ``batch_size``, ``optimizer``, ..; by default Adam at a rate of 0.003
        that falls to zero as a cosine, gradients clipped at a norm of 1. ``lr`` may be several rates: every seed is
        trained at each, and keeps the network whose loss on validation, at the length of training, was lowest.

    Returns
    -------
    Ladder

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.training.ladder("rnn", rungs=["Z2"], hidden_size=4, length=4, iterations=2, seeds=2, examples=8)
    >>> found.rungs, found.longest, found.solved.shape
    (('Z2',), 32, (1, 2))
    """

    def build(task: Task) -> Builder:
        return maker(
            network,
            task,
            hidden_size=hidden_size,
            num_layers=num_layers,
            parameters=parameters,
            count=count,
            options=dict(options or {}),
        )

    return climb(
        build,
        rungs=rungs,
        length=length,
        factor=factor,
        depth=depth,
        criterion=criterion,
        seeds=seeds,
        iterations=iterations,
        examples=examples,
        minutes=minutes,
        folder=folder,
        on_rung=on_rung,
        **training,
    )


def climb(
    build: Callable[[Task], Builder],
    *,
    rungs: Sequence[str] = RUNGS,
    length: int = 16,
    factor: int = 8,
    depth: int = 4,
    criterion: float = 0.99,
    seeds: int | Sequence[int] = 3,
    iterations: int = 5000,
    examples: int = 256,
    minutes: float | None = None,
    folder: str | Path | None = None,
    on_rung: Callable[[Mapping[str, Any]], None] | None = None,
    **training: Any,
) -> Ladder:
    """Do what `ladder` does, with what builds the networks of each task."""
    rungs = [rungs] if isinstance(rungs, str) else list(rungs)
    if not rungs or len(set(rungs)) != len(rungs):
        raise expected("rungs", "different ones, one or more", rungs)
    if positive_int("length", length) < 2 or positive_int("factor", factor) < 2:
        raise UserError(f"length and factor must be at least 2, got length={length} and factor={factor}")
    longest, bound = length * factor, share("criterion", criterion)
    tested = positive_int("examples", examples)
    tasks = {rung: rung_task(rung, length, positive_int("depth", depth)) for rung in rungs}
    steps = positive_int("iterations", iterations)
    known = checked_training(training, next(iter(tasks.values())), also=("loss", "callbacks", "progress"))
    looks = max(1, steps // _LOOKS)
    own = {**RECIPE, "validate_every": looks, "validation_size": 256, "test_size": 64, **known}
    rates, chosen = rates_of(own), checked_seeds(seeds)

    def examine(rung: str, found: Sequence[Run]) -> dict[str, Any]:
        test = rung_task(rung, longest, depth)
        curves = [_curve(run, test, tested) for run in found]
        solved = [_solved(curve, bound) for curve in curves]
        return {"solved": solved, "scores": [curve[_shown(longest) - 1] for curve in curves]}

    series = Series(
        kind="ladder",
        tasks=tasks,
        build=build,
        examine=examine,
        asked={
            "rungs": list(rungs),
            "length": length,
            "factor": factor,
            "depth": depth,
            "criterion": bound,
            "examples": tested,
        },
        seeds=chosen,
        iterations=steps,
        minutes=checked_minutes(minutes),
        folder=None if folder is None else Path(folder),
        training=own,
        tell=on_rung,
    )
    lines, reason = series.run()
    label = build(next(iter(tasks.values()))).label
    for line in lines.values():
        line.setdefault("rates", [rates[0]] * len(chosen))
    return _result(label, [each for each in rungs if each in lines], lines, (length, longest), chosen, bound, reason)


def _result(
    label: str,
    rungs: Sequence[str],
    lines: Lines,
    lengths: tuple[int, int],
    seeds: tuple[int, ...],
    criterion: float,
    reason: str,
) -> Ladder:
    length, longest = lengths
    shown = _shown(longest)
    solved = np.array([lines[each]["solved"] for each in rungs], dtype=int).reshape(-1, len(seeds))
    scores = np.array([lines[each]["scores"] for each in rungs], dtype=float).reshape(-1, len(seeds), len(shown))
    means = [mean_interval([float(each) for each in row], least=0.0, most=float(longest)) for row in solved]
    rates = [wilson(int((row >= longest).sum()), len(seeds)) for row in solved]
    return Ladder(
        status="estimate",
        digits=None,
        assumptions=(
            f"a length is solved when the accuracy over its steps reaches {criterion:g}",
            "trained within a number of iterations: more could solve more",
        ),
        cost="O(rungs seeds iterations T) time",
        network=label,
        rungs=tuple(rungs),
        length=length,
        longest=longest,
        lengths=shown,
        scores=scores,
        solved=solved,
        **_columns(means, ("mean", "lower", "upper")),
        **_columns(rates, ("rate", "rate_lower", "rate_upper")),
        learned=(solved >= length).mean(1) if len(solved) else np.zeros(0),
        rates=np.array([lines[each]["rates"] for each in rungs], dtype=float).reshape(-1, len(seeds)),
        seeds=seeds,
        criterion=criterion,
        complete=not reason,
        reason=reason,
        seconds=sum(lines[each]["seconds"] for each in rungs),
        parameters=max((lines[each]["parameters"] for each in rungs), default=0),
    )


def _columns(intervals: Sequence[Interval], names: tuple[str, str, str]) -> dict[str, Float[np.ndarray, " rungs"]]:
    rows = [[each.value if end is None else end for end in each] for each in intervals]
    found = np.array(rows, dtype=float).reshape(-1, 3)
    return {name: found[:, k] for k, name in enumerate(names)}


def _shown(longest: int) -> Int[np.ndarray, " lengths"]:
    """Return the lengths at which scores are kept: all up to 16, then each an eighth longer."""
    found = list(range(1, min(16, longest) + 1))
    while found[-1] < longest:
        found.append(min(longest, max(found[-1] + 1, round(1.125 * found[-1]))))
    return np.array(found)


def _solved(curve: Float[np.ndarray, " steps"], criterion: float) -> int:
    """Return the longest beginning whose score reaches the criterion; NaN reaches nothing."""
    reached = np.nonzero(curve >= criterion)[0]
    return int(reached[-1]) + 1 if len(reached) else 0


def _curve(run: Run, task: Task, examples: int) -> Float[np.ndarray, " steps"]:
    if run.status == "failed":
        return np.full(task.steps, np.nan)
    return prefix_scores(run.model, task, examples, stream(run.seed, f"ladder/{task.steps}"))


@torch.no_grad()
def prefix_scores(model: Model, task: Task, examples: int, generator: torch.Generator) -> Float[np.ndarray, " steps"]:
    """Return the accuracy over the first 1, 2, .. steps of fresh sequences, all of whose steps count."""
    right = torch.zeros(task.steps, dtype=torch.float64)
    for start in range(0, examples, _CHUNK):
        batch = task.sample(min(_CHUNK, examples - start), generator)
        where: Any = next(model.parameters()).device
        answers: Tensor = model(batch.to(where).inputs)[0]
        right += (answers.argmax(-1).cpu() == batch.targets).double().sum(1)
    return np.asarray((right.cumsum(0) / (examples * torch.arange(1, task.steps + 1))).numpy())
