"""Memory of trained networks: effective remembrance, longer sequences, and the forgetting curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.intervals import Interval, mean_interval
from mnemoscope.core.result import Result, plain, result
from mnemoscope.core.seeds import stream
from mnemoscope.measures.remembrance import EffectiveRemembrance, remembrance_of
from mnemoscope.report import chart
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.capacities.inputs import Builder, Network, checked_seeds, checked_training, maker
from mnemoscope.training.configuration import describe_task, task_of
from mnemoscope.training.fitting import Run
from mnemoscope.training.model import Model
from mnemoscope.training.series import Series, checked_minutes

__all__ = [
    "MULTIPLES",
    "Remembering",
    "forgetting_curve",
    "length_scores",
    "remembering",
    "remembering_of",
    "trained_remembrance",
]

MULTIPLES = (1, 2, 4, 8)
"""Of the length of training, at which networks are tested."""

_SHARES = (0.25, 0.5, 1, 2, 4, 8)
"""Of the difficulty of training, at which the forgetting curve is taken."""

_LEARNED = 0.1
"""Score above statistics from which on something was learned, by more than the chance of a few hundred answers."""

_DRAWN = 2048
"""Sequences by which the most frequent answer is known."""

_COST = "O(seeds iterations T) time to train, O(T) to test"


@result
class Remembering(Result):
    """What a population of networks, trained on one task, remembers.

    Attributes
    ----------
    network, task
        What was trained on what, in words.
    length
        Of the sequences in training.
    trained
        Score of each seed on its test; NaN where training diverged.
    multiples
        Of the length, at which scores are taken.
    carried, reset
        Score by seed and multiple: with the state carried through the whole sequence, and with the state set back to
        its start after every `length` steps.
    floor
        By seed the score that statistics alone give: of the most frequent answer; 0 for text, whose score is above it.
    ratio, ratio_lower, ratio_upper
        Score above the floor at the longest over that at the length of training, state carried: 1 is no loss. Mean over
        the seeds that have learned something; NaN where none has.
    reset_ratio
        The same with the state set back.
    forgetting_lengths
        At which the forgetting curve is taken: the task's difficulty, or characters of text that are repeated.
    copied, statistics
        Accuracy by seed and length of what has to be remembered, and that which statistics alone give.
    remembrance_lengths, remembrance
        k, and the total variation by seed between predictions from the whole past and from its last k steps.
    remembered
        By seed the steps that predictions look back.
    seeds
        Of the trainings.
    complete, reason
        Whether it was trained to its end.
    seconds, parameters
        Of training; of the network with its readout.
    """

    measure: ClassVar[str] = "remembering"
    references: ClassVar[tuple[str, ...]] = ("buitragoruiz2025", "liu2024")

    network: str
    task: str
    length: int
    trained: Float[np.ndarray, " seeds"]
    multiples: Int[np.ndarray, " multiples"]
    carried: Float[np.ndarray, "seeds multiples"]
    reset: Float[np.ndarray, "seeds multiples"]
    floor: Float[np.ndarray, " seeds"]
    ratio: float
    ratio_lower: float
    ratio_upper: float
    reset_ratio: float
    forgetting_lengths: Int[np.ndarray, " lengths"]
    copied: Float[np.ndarray, "seeds lengths"]
    statistics: Float[np.ndarray, "seeds lengths"]
    remembrance_lengths: Int[np.ndarray, " steps"]
    remembrance: Float[np.ndarray, "seeds steps"]
    remembered: Float[np.ndarray, " seeds"]
    seeds: tuple[int, ...]
    complete: bool
    reason: str
    seconds: float
    parameters: int

    @property
    def forgetting(self) -> Float[np.ndarray, "seeds lengths"]:
        """Accuracy above what statistics alone give."""
        return np.asarray(self.copied - self.statistics)

    def __str__(self) -> str:
        if not self.complete:
            return f"{self.network} on {self.task}: {self.reason}"
        times = self.multiples[-1]
        kept = f"{self.ratio:.3g} of what it learned is left at {times} times as long"
        kept += "" if np.isnan(self.reset_ratio) else f" ({self.reset_ratio:.3g} with the state set back)"
        kept = "nothing was learned" if np.isnan(self.ratio) else kept
        gain = _mean(self.forgetting)
        return (
            f"{self.network} on {self.task}, trained at {self.length} steps: {kept}; accuracy "
            f"{gain[0]:.3g} above statistics at {self.forgetting_lengths[0]}, {gain[-1]:.3g} at "
            f"{self.forgetting_lengths[-1]}; predictions look {_mean(self.remembered[:, None])[0]:.3g} steps back"
        )

    def plot(self) -> chart.Chart:
        """Draw scores by length, the forgetting curve and the remembrance."""
        steps = self.length * self.multiples
        longer = chart.lines(
            {"state carried": (steps, _mean(self.carried)), "state set back": (steps, _mean(self.reset))},
            x="length",
            y="score",
            title="Longer sequences",
            log_x=True,
            points=True,
        )
        forgetting = chart.lines(
            {"above statistics": (self.forgetting_lengths, _mean(self.forgetting))},
            x="length",
            y="accuracy above statistics",
            title="Forgetting curve",
            log_x=True,
            points=True,
        )
        remembrance = chart.lines(
            {"total variation": (self.remembrance_lengths, _mean(self.remembrance))},
            x="steps k of the past that are left",
            y="total variation",
            title="Effective remembrance",
            log_x=True,
        )
        return chart.beside(longer, forgetting, remembrance)


def _mean(values: Float[np.ndarray, "seeds some"]) -> Float[np.ndarray, " some"]:
    """Return the mean over seeds that have a value; NaN where none has."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(0), known.sum(0)
    return np.array([each / many if many else np.nan for each, many in zip(total, count, strict=True)])


# One trained network ----------------------------------------------------------------------------------


@torch.no_grad()
def length_scores(model: Model, task: Task, examples: int, seed: int) -> dict[str, list[float]]:
    """Return scores at the length of training and at multiples of it, with the state carried and set back.

    For text both read the same characters of the test text.
    """
    found: dict[str, list[float]] = {"carried": [], "reset": []}
    for times in MULTIPLES:
        longer = _longer(task, times)
        batch = _test_batch(longer, examples, stream(seed, f"longer/{times}"))
        where: Any = next(model.parameters()).device
        batch = batch.to(where)
        found["carried"].append(longer.score(model(batch.inputs)[0], batch))
        found["reset"].append(longer.score(_set_back(model, batch, task.steps), batch))
    return found


def _set_back(model: Model, batch: Batch, every: int) -> Tensor:
    """Return answers of a network whose state is set back to its start after every so many steps."""
    steps = len(batch.inputs)
    return torch.cat([model(batch.inputs[start : start + every])[0] for start in range(0, steps, every)])


def _axis(task: Task) -> str:
    """Return the setting of a task that makes its sequences longer."""
    axes = task.axes or (task.difficulty,)
    found = next((each for each in ("length", "delay") if each in axes), None)
    if found is None or task.kind == "relational":
        raise UserError(f"remembering needs a task with a length or a delay, and {task.name} has none")
    return found


def _longer(task: Task, times: float) -> Task:
    axis = _axis(task)
    return task.harder(max(task.limits(axis)[0], round(times * getattr(task, axis))), axis)


def _test_batch(task: Task, examples: int, generator: torch.Generator) -> Batch:
    """Return fresh sequences; of a text pieces of its test part, from the same places at every length."""
    if not task.streams:
        return task.sample(examples, generator)
    return next(iter(task.windows("test", _streams(task, examples), task.steps)))


def _streams(task: Any, examples: int) -> int:
    """Return how many pieces of the longest length the test text has room for, at most as many as asked for."""
    room = (len(task.text.test) - 1) // (task.steps + 1)
    if room < 1:
        raise expected("length", f"at most {len(task.text.test) - 2}, the characters of the test text", task.steps)
    return int(min(examples, room))


@torch.no_grad()
def forgetting_curve(model: Model, task: Task, examples: int, seed: int) -> dict[str, list[float]]:
    """Return by length the accuracy of what has to be remembered, and that of statistics alone.

    A task is asked at a quarter to eight times its length or delay; statistics give the most frequent answer. A text is
    read twice, and the second reading counts: what it is better than after another text was remembered.
    """
    found: dict[str, list[float]] = {"lengths": [], "copied": [], "statistics": []}
    usual = float("nan") if task.streams else _most_frequent(task, seed)
    for times in _SHARES:
        asked = _longer(task, times)
        length = int(getattr(asked, _axis(task)))
        if length in found["lengths"] or length < 2:
            continue
        if task.streams:
            copied, statistics = _text_copied(model, asked, examples, seed)
        else:
            copied, statistics = _task_copied(model, asked, examples, seed), usual
        found["lengths"].append(length)
        found["copied"].append(copied)
        found["statistics"].append(statistics)
    return found


def _task_copied(model: Model, task: Task, examples: int, seed: int) -> float:
    """Return the accuracy at the steps that count."""
    batch = task.sample(examples, stream(seed, f"forgetting/{task.steps}"))
    where: Any = next(model.parameters()).device
    return task.score(model(batch.to(where).inputs)[0].cpu(), batch)


def _most_frequent(task: Task, seed: int) -> float:
    """Return the share of the most frequent answer among those that count."""
    batch = task.sample(_DRAWN, stream(seed, "statistics"))
    counted = batch.targets if batch.per_sequence else batch.targets[task.scored(batch)]
    return float(counted.bincount().max() / counted.numel())


def _text_copied(model: Model, task: Any, examples: int, seed: int) -> tuple[float, float]:
    """Return the accuracy of the next character in a text that was just read, and in one that was not."""
    text = task.text.test
    length = task.length
    places = stream(seed, f"forgetting/{length}")
    starts = torch.randint(max(1, len(text) - length - 1), (2, examples), generator=places)
    piece, other = (text[starts[k] + torch.arange(length + 1)[:, None]].long() for k in range(2))
    where: Any = next(model.parameters()).device

    def accuracy(before: Tensor) -> float:
        answers = model(torch.cat([before, piece[:-1]]).to(where))[0][length + 1 :].cpu()
        return float((answers.argmax(-1) == piece[1:]).double().mean())

    return accuracy(piece), accuracy(other)


def trained_remembrance(
    model: Model, task: Task, examples: int, seed: int, share: float = 0.05
) -> EffectiveRemembrance:
    """Return the effective remembrance of a trained network with its readout, on its task at four times its length."""
    longer = _longer(task, 4) if task.streams else task
    batch = _test_batch(longer, examples, stream(seed, "remembrance"))
    where: Any = next(model.parameters()).device

    def predict(inputs: Any) -> Tensor:
        answers: Tensor = model(inputs.to(where))[0]
        return answers if model.once else answers[-1]

    return remembrance_of(
        predict,
        batch.inputs,
        prediction="the softmax of the trained readout after the last step",
        share=share,
        cost=_COST,
        part=lambda inputs, k: inputs[-k:],
    )


def _examined(run: Run, examples: int) -> dict[str, Any]:
    """Return all that is asked of one trained network, ready for JSON; nothing of one that diverged."""
    if run.status == "failed":
        return {"trained": None}
    task = _checked(run.task)
    scores = length_scores(run.model, task, examples, run.seed)
    curve = forgetting_curve(run.model, task, examples, run.seed)
    past = trained_remembrance(run.model, task, examples, run.seed)
    found: dict[str, Any] = plain(
        {
            "trained": run.score,
            **scores,
            "floor": 0.0 if task.streams else curve["statistics"][0],
            "forgetting": curve,
            "remembrance": {"lengths": past.lengths, "curve": past.curve, "steps": past.steps},
        }
    )
    return found


# Populations -----------------------------------------------------------------------------------------


def remembering_of(found: Run | Sequence[Run], *, examples: int = 128, network: str | None = None) -> Remembering:
    """Say what networks that were trained remember: a run of `fit`, or those of `fit_population`.

    Parameters
    ----------
    found
        What `fit`, `fit_population` or `resume` returned.
    examples
        Sequences of every test.
    network
        What to call it; None: the name of its class.
    """
    given = [found] if isinstance(found, Run) else list(found)
    if not given or not all(isinstance(each, Run) for each in given):
        raise expected("found", "a run or several", type(found).__name__)
    task = _checked(given[0].task)
    from mnemoscope.training.fitting import network_name

    lines = [_examined(each, positive_int("examples", examples)) for each in given]
    label = network or network_name(given[0].model)
    parameters = sum(p.numel() for p in given[0].model.parameters())
    return _result(label, task, [each.seed for each in given], lines, 0.0, parameters)


def _checked(task: Any) -> Task:
    """Return a task that has a length, and classes to answer by; else raise one line."""
    if not isinstance(task, Task):
        raise UserError(f"remembering needs a task with right answers, got {task.name}")
    _axis(task)
    if not task.classifies:
        raise UserError(f"remembering needs answers that are classes, and those of {task.name} are numbers")
    if task.output_size < 2:
        raise UserError(f"remembering needs at least 2 classes, and {task.name} has {task.output_size}")
    return task


def remembering(
    network: Network | None,
    task: str | Task = "copying",
    *,
    hidden_size: int | None = None,
    num_layers: int = 1,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 3,
    iterations: int = 2000,
    examples: int = 128,
    minutes: float | None = None,
    folder: str | Path | None = None,
    build: Callable[[Task], Builder] | None = None,
    **training: Any,
) -> Remembering:
    """Train a network on a task, and say how long it really remembers.

    Three questions to a population of trained networks: what is left of the score on sequences up to eight times as
    long, with the state carried and with the state set back after every length of training; how much better than
    statistics alone it answers what has to be remembered, by length (the forgetting curve); and how far back its
    predictions look (effective remembrance).

    Parameters
    ----------
    network
        As in `mnemoscope.training.capacity`.
    task
        One with a length or a delay and answers that are classes: ``"copying"``, ``"group-composition"``,
        ``"shakespeare"``.
    hidden_size, num_layers, parameters, count, options
        Of a network that is built, as in `capacity`.
    seeds
        How many, or which: one network each.
    iterations
        Of one training.
    examples
        Sequences of every test.
    minutes
        Of training in all.
    folder
        Keeps a record; the same call goes on where it was, to the same numbers.
    build
        Instead of a network: what builds it for a task.
    training
        Settings of `mnemoscope.training.fit`.

    Returns
    -------
    Remembering

    Examples
    --------
    >>> import mnemoscope as ms
    >>> task = ms.tasks.create("copying", delay=4, symbols=1, alphabet=4)
    >>> found = ms.training.remembering("rnn", task, hidden_size=8, iterations=2, seeds=2, examples=16)
    >>> found.carried.shape, found.forgetting_lengths.tolist()
    ((2, 4), [2, 4, 8, 16, 32])
    """
    chosen = _checked(task_of(task))
    tested, own = positive_int("examples", examples), checked_seeds(seeds)

    def usual(task: Task) -> Builder:
        if network is None:
            raise expected("network", "a name, a class or a layer", None)
        sizes: dict[str, Any] = {"hidden_size": hidden_size, "num_layers": num_layers}
        budget: dict[str, Any] = {"parameters": parameters, "count": count}
        return maker(network, task, **sizes, **budget, options=dict(options or {}))

    made = build or usual
    series = Series(
        kind="remembering",
        tasks={chosen.name: chosen},
        build=made,
        examine=lambda _, found: {"members": [_examined(each, tested) for each in found]},
        asked={"task": describe_task(chosen), "examples": tested},
        seeds=own,
        iterations=positive_int("iterations", iterations),
        minutes=checked_minutes(minutes),
        folder=None if folder is None else Path(folder),
        training=checked_training(training, chosen, also=("loss", "callbacks", "progress")),
    )
    lines, reason = series.run()
    line = lines.get(chosen.name, {"members": [{"trained": None}] * len(own), "seconds": 0.0, "parameters": 0})
    return _result(made(chosen).label, chosen, own, line["members"], line["seconds"], line["parameters"], reason=reason)


def _result(
    label: str,
    task: Task,
    seeds: Sequence[int],
    members: Sequence[Mapping[str, Any]],
    seconds: float,
    parameters: int,
    reason: str = "",
) -> Remembering:
    known = [each for each in members if "carried" in each]
    lengths = known[0]["forgetting"]["lengths"] if known else []
    past = known[0]["remembrance"]["lengths"] if known else []

    def rows(size: int, *path: str) -> Float[np.ndarray, "seeds some"]:
        found = []
        for each in members:
            value: Any = each if "carried" in each else None
            for name in path:
                value = None if value is None else value[name]
            found.append([np.nan] * size if value is None else value)
        return np.array(found, dtype=float).reshape(len(members), size)

    carried, reset = (rows(len(MULTIPLES), name) for name in ("carried", "reset"))
    floor = np.array([each["floor"] if "carried" in each else np.nan for each in members])
    kept, back = _ratio(carried, floor), _ratio(reset, floor)
    return Remembering(
        status="estimate",
        digits=None,
        assumptions=(
            "trained within a number of iterations: more could remember longer",
            f"a ratio is over the seeds whose score at the length of training is {_LEARNED:g} above statistics alone",
        ),
        cost=_COST,
        network=label,
        task=task.name,
        length=task.steps,
        trained=np.array([_number(each["trained"]) for each in members]),
        multiples=np.array(MULTIPLES),
        carried=carried,
        reset=reset,
        floor=floor,
        ratio=kept.value,
        ratio_lower=np.nan if kept.lower is None else kept.lower,
        ratio_upper=np.nan if kept.upper is None else kept.upper,
        reset_ratio=back.value,
        forgetting_lengths=np.array(lengths, dtype=int),
        copied=rows(len(lengths), "forgetting", "copied"),
        statistics=rows(len(lengths), "forgetting", "statistics"),
        remembrance_lengths=np.array(past, dtype=int),
        remembrance=rows(len(past), "remembrance", "curve"),
        remembered=np.array([each["remembrance"]["steps"] if "carried" in each else np.nan for each in members]),
        seeds=tuple(seeds),
        complete=not reason,
        reason=reason,
        seconds=seconds,
        parameters=parameters,
    )


def _number(value: Any) -> float:
    return np.nan if value is None or isinstance(value, str) else float(value)


def _ratio(scores: Float[np.ndarray, "seeds multiples"], floor: Float[np.ndarray, " seeds"]) -> Interval:
    """Return what is left of the score above statistics at the longest, over the seeds that have one to lose."""
    above = scores - floor[:, None]
    with np.errstate(invalid="ignore"):
        learned = above[:, 0] > _LEARNED
    found = (above[learned, -1] / above[learned, 0]).tolist()
    return mean_interval(found) if found else Interval(float("nan"), None, None)
