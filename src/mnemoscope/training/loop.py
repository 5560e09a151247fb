"""The loop of a training, of one network or of many at once: steps, metrics, validation, endings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import seed_of
from mnemoscope.machines import deadline, stop_asked
from mnemoscope.runs import Checkpoint, OutOfBudget
from mnemoscope.tasks import Batch, Problem, Task
from mnemoscope.training.cautions import size_of, warn_of_growth
from mnemoscope.training.data import Source
from mnemoscope.training.descent import part
from mnemoscope.training.objective import Loss
from mnemoscope.training.options import Options
from mnemoscope.training.state import Callback, Ending, Member, Moment
from mnemoscope.training.step import evaluating

__all__ = ["Loop", "LossAndScore", "check_time", "evaluate", "validation_interval"]


class Loop:
    """A training that is under way.

    Parameters
    ----------
    step
        A `Descent` or a `CohortStep`, which holds the weights.
    task
        Of all networks; or an environment.
    members
        The networks, in the order in which `step` holds them.
    solo
        Given a member and weights, returns a `Step` of it alone: the last test of one that ends before the others.
    loss
        An own loss instead of the task's.
    callbacks
        Called at every line of the metrics.
    assess
        Returns loss and score of all that the step holds on their data, as `evaluate`, which is the default, does.
    """

    def __init__(
        self,
        step: Any,
        task: Problem,
        members: Sequence[Member],
        solo: Callable[[Member, Mapping[str, Tensor]], Any],
        loss: Loss | None = None,
        callbacks: Sequence[Callback] = (),
        assess: Callable[..., list[LossAndScore]] | None = None,
    ) -> None:
        self.assess: Callable[..., list[LossAndScore]] = evaluate if assess is None else assess
        self.step, self.task, self.members, self.solo = step, task, list(members), solo
        self.loss, self.callbacks = loss, tuple(callbacks)
        self.alive = [member for member in self.members if member.ending is None]
        self.iteration = 0
        self.options = members[0].options
        self.validate_every = validation_interval(members[0].options, members[0].source)
        step.carries = members[0].source.carries
        self.good: Checkpoint | None = None
        self.before_failure: Checkpoint | None = None
        self._generator = torch.Generator().manual_seed(seed_of(self.options.seed, "dropout"))

    # Running ------------------------------------------------------------------------------------

    def run(self, until: float = math.inf) -> Iterator[list[dict[str, Any]]]:
        """Learn until all have ended; give the new lines of the metrics at every step that has some.

        At the time `until` (of `time.monotonic`) a good state is kept, and `OutOfBudget` raised.
        """
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._generator.get_state())
            self.step.train_mode(True)
            if self.good is None:
                self.begin()
            while self.alive:
                if self.iteration >= self.options.iterations:
                    self._end(dict.fromkeys(range(len(self.alive)), "all iterations done"))
                    self.good = self.snapshot()
                    yield []
                    return
                if time.monotonic() >= deadline(until):
                    yield self._look(False, False)
                    if self.alive:
                        check_time(until)
                    continue
                rows = self._advance()
                if rows is not None:
                    yield rows

    def begin(self) -> Checkpoint:
        """Return the checkpoint that the training begins with, before its first step."""
        self.good = self.snapshot()
        return self.good

    def _advance(self) -> list[dict[str, Any]] | None:
        """Make one step; return the lines of the metrics when there are any, or when a checkpoint may follow."""
        if self.alive[0].source.starts:
            self.step.carry = None
        self.step.optimiser.factor = self.options.rate_factor(self.iteration)
        losses = self.step([member.source.next() for member in self.alive])
        self.iteration += 1
        finite = True
        for member, loss in zip(self.alive, losses, strict=True):
            member.total += loss
            member.count += 1
            finite = finite and math.isfinite(loss)
        if not finite:
            self._fail([math.isfinite(loss) for loss in losses], "the loss is not finite")
        options, now = self.options, self.iteration
        logs = now % (options.log_every or 1) == 0 or now == options.iterations
        # The last step is validated too, so that it can be the one that is tested.
        checks = bool(self.validate_every) and (now % self.validate_every == 0 or now == options.iterations)
        saves = options.checkpoint_every is not None and now % options.checkpoint_every == 0
        return self._look(logs, checks) if logs or checks or saves or not finite else None

    def _look(self, logs: bool, checks: bool) -> list[dict[str, Any]]:
        """Write lines, validate, let schedules and callbacks decide, and keep a good state to come back to."""
        healthy = self.step.finite() if self.alive else []
        if not all(healthy):
            self._fail(healthy, "the weights are not finite")
        rows: list[dict[str, Any]] = [{} for _ in self.alive]
        stops: dict[int, str] = {}
        if self.alive and logs:
            self._log(rows)
        if self.alive and checks:
            stops = self._validate(rows)
        lines = [
            {"step": self.iteration, **({"member": member.number} if len(self.members) > 1 else {}), **row}
            for member, row in zip(self.alive, rows, strict=True)
            if row
        ]
        stops |= self._call_back(rows)
        if stops:
            self._end(stops)
        self.good = self.snapshot()
        return lines

    def _log(self, rows: list[dict[str, Any]]) -> None:
        for member, score, row in zip(self.alive, self.step.scores(), rows, strict=True):
            row |= {"loss": member.total / member.count, "score": score}
            member.total, member.count = 0.0, 0

    def _validate(self, rows: list[dict[str, Any]]) -> dict[int, str]:
        """Validate all; return which are to stop, and why."""
        data = [member.source.held_out("validation") for member in self.alive]
        outcomes = self.assess(self.step, self.task, data, self.step.carries, self.loss)
        stops, changed = {}, False
        for k, (member, outcome, row) in enumerate(zip(self.alive, outcomes, rows, strict=True)):
            better, then = member.watch.see(self.iteration, outcome.loss, member.options.plateau)
            row |= {"validation_loss": outcome.loss, "validation_score": outcome.score}
            reached = member.options.target is not None and outcome.score >= member.options.target
            if better or reached:
                member.best = self.step.state(k)
            if reached:
                member.watch.best_step = self.iteration
                stops[k] = f"the score on validation reached {member.options.target:g}"
            elif then == "stop":
                stops[k] = f"no improvement in {member.watch.waited} validations"
            changed = changed or then == "drop"
            row |= {"rate": member.rate} if member.options.plateau is not None else {}
        if changed:
            self.step.set_rates([member.rate for member in self.alive])
        return stops

    def _call_back(self, rows: list[dict[str, Any]]) -> dict[int, str]:
        stops = {}
        for k, (member, row) in enumerate(zip(self.alive, rows, strict=True)):
            if not row:
                continue
            for callback in self.callbacks:
                moment = Moment(member.number, self.iteration, dict(row), partial(self.step.state, k))
                if callback(moment) is True:
                    stops[k] = "a callback stopped it"
        return stops

    # Ending -------------------------------------------------------------------------------------

    def _end(self, reasons: dict[int, str]) -> None:
        """End some of those alive: give them their best weights, and test these."""
        together = len(reasons) == len(self.alive)
        for k, reason in reasons.items():
            member = self.alive[k]
            chosen = member.watch.best_step if member.best is not None else self.iteration
            member.final = member.best if member.best is not None else self.step.state(k)
            member.ending = Ending("finished", reason, self.iteration, chosen)
            if together:
                self.step.load_state(k, member.final)
        ended = [self.alive[k] for k in reasons]
        groups = [(self.step, self.alive)] if together else [(self.solo(m, m.final or {}), [m]) for m in ended]
        for step, group in groups:
            self._test(step, group)
        self._drop(set(reasons))

    def _test(self, step: Any, group: list[Member]) -> None:
        """Test some that have ended, once: nothing that is chosen depends on it."""
        tests = [member.source.tests() for member in group]
        for label in tests[0]:
            task = tests[0][label][0]
            outcomes = self.assess(step, task, [own[label][1] for own in tests], self.step.carries, self.loss)
            for member, outcome in zip(group, outcomes, strict=True):
                ending = member.ending
                assert ending is not None
                ending.tests[label] = {**outcome._asdict(), **_reported(task, outcome.loss)}
                if ending.score is None:
                    ending.loss, ending.score = outcome

    def _fail(self, healthy: Sequence[bool], what: str) -> None:
        """End those that diverged, with their last good weights."""
        assert self.good is not None
        self.before_failure = self.good
        failed = {k for k, fine in enumerate(healthy) if not fine}
        for k in failed:
            member = self.alive[k]
            reason = f"{what} at step {self.iteration}; {advice(member.options)}"
            member.ending = Ending("failed", reason, self.iteration, self.good.step)
            member.final = self._good_weights(member)
        self._drop(failed)

    def _good_weights(self, member: Member) -> dict[str, Tensor]:
        assert self.good is not None
        place = self.good.state["alive"].index(member.number)
        found = part(self.good.tensors, "step/model/")
        return found if len(self.members) == 1 else {name: tensor[place].clone() for name, tensor in found.items()}

    def _drop(self, gone: set[int]) -> None:
        left = [k for k in range(len(self.alive)) if k not in gone]
        self.alive = [self.alive[k] for k in left]
        if left:
            self.step.keep(left)

    # Coming back --------------------------------------------------------------------------------

    def snapshot(self) -> Checkpoint:
        """Return everything that the rest depends on."""
        tensors = {f"step/{name}": tensor for name, tensor in self.step.tensors().items()} if self.alive else {}
        for member in self.members:
            tensors |= {f"member/{member.number}/{name}": tensor for name, tensor in member.tensors().items()}
        own = self._generator if self.good is None else None
        tensors["generator"] = torch.get_rng_state() if own is None else own.get_state()
        state = {
            "iteration": self.iteration,
            "alive": [member.number for member in self.alive],
            "members": {str(member.number): member.state() for member in self.members},
        }
        return Checkpoint(self.iteration, tensors, state)

    def restore(self, snapshot: Checkpoint) -> None:
        """Go on from a snapshot of the same training."""
        tensors, state = snapshot.tensors, snapshot.state
        for member in self.members:
            try:
                member.load(part(tensors, f"member/{member.number}/"), state["members"][str(member.number)])
            except KeyError as error:
                raise UserError(
                    f"the checkpoint of step {snapshot.step} lacks {error}: it is of another program"
                ) from None
        places = [k for k, member in enumerate(self.members) if member.number in state["alive"]]
        self.alive = [self.members[k] for k in places]
        if self.alive:
            if len(places) < len(self.members):
                self.step.keep(places)
            self.step.load(part(tensors, "step/"))
            self.step.set_rates([member.rate for member in self.alive])
        self._generator.set_state(tensors["generator"])
        self.iteration, self.good = int(state["iteration"]), snapshot


def check_time(until: float) -> None:
    """Raise when a time has come, or when a signal has asked this process to stop."""
    if time.monotonic() >= deadline(until):
        raise OutOfBudget("it was asked to stop" if stop_asked() else "its time is used up")


def advice(options: Any) -> str:
    """Say what to do about a training that diverged."""
    clip = "" if options.clipping else ", or clip the gradient (clip_norm=1)"
    return f"lower the learning rate (lr={options.lr:g} now){clip}"


def _reported(task: Problem, loss: float) -> dict[str, float]:
    return task.reported(loss) if isinstance(task, Task) else {}


def validation_interval(options: Options, source: Source) -> int:
    """Return the steps between two validations; 0 when there are none."""
    if not source.validates:
        if options.validate_every or options.plateau is not None or options.target is not None:
            raise UserError("the task has no validation set: no validate_every, schedule, patience or target for it")
        return 0
    if options.validate_every is not None:
        return options.validate_every
    if source.epoch is not None:
        return source.epoch
    if options.target is not None:
        return 100
    return 1000 if options.plateau is not None else 0


class LossAndScore(NamedTuple):
    """Mean loss and score over a set."""

    loss: float
    score: float


def evaluate(
    step: Any, task: Task, data: Sequence[Iterator[Batch]], carries: bool = False, loss: Loss | None = None
) -> list[LossAndScore]:
    """Return loss and score of each network that `step` holds on its own data.

    Both are means over what counts: parts of different sizes weigh by what counts in them.
    """
    sums = [[0.0, 0.0, 0.0, 0.0] for _ in data]
    carry, sizes = None, list[float]()
    own = loss or task.loss
    with evaluating(step):
        for batches in zip(*data, strict=True):
            answers, prepared, state = step.outputs(batches, carry)
            carry = state if carries else None
            if carries:
                sizes.append(size_of(state))
            for total, answer, batch in zip(sums, answers, prepared, strict=True):
                counted, scored = _weights(task, batch)
                total[0] += counted * float(own(answer, batch))
                total[1] += counted
                total[2] += scored * task.score(answer, batch)
                total[3] += scored
    warn_of_growth(step.model, sizes)
    return [LossAndScore(a / b, c / d) for a, b, c, d in sums]


def _weights(task: Task, batch: Batch) -> tuple[int, int]:
    if batch.per_sequence:
        return batch.size, batch.size
    return int(batch.mask.sum()), int(task.scored(batch).sum())
