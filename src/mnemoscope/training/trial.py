"""One small trial before a training: whether the network's answers have the shape that the task asks for."""

from __future__ import annotations

import torch

from mnemoscope.core.errors import MnemoscopeError, UserError, expected
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.data import Fixed, Source
from mnemoscope.training.model import Model
from mnemoscope.training.options import Options
from mnemoscope.training.step import autocast, prepared, trained_parameters

__all__ = ["check_answers", "trial_batch"]


def trial_batch(task: Task, source: Source, size: int = 2) -> Batch:
    """Return a few sequences that nothing else depends on."""
    if isinstance(source, Fixed):
        return source.splits.train.take(slice(0, size))
    return task.sample(size, torch.Generator().manual_seed(0))


@torch.no_grad()
def check_answers(model: Model, task: Task, source: Source, options: Options) -> None:
    """Raise one line unless the model answers a batch in the shape that the task asks for."""
    like = trained_parameters(model)[1][0]
    batch = prepared(trial_batch(task, source), like, options)
    training = model.training
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), autocast(like, options):
            answers = model(batch.inputs, None, batch.lengths)[0]
    except MnemoscopeError:
        raise
    except RuntimeError as error:
        raise UserError(f"the network cannot answer {task.name}: {' '.join(str(error).split())[:300]}") from error
    finally:
        model.train(training)
    steps, size = batch.mask.shape
    wanted = (steps, size, task.output_size)
    known = [wanted, wanted[1:]] if batch.per_sequence else [wanted]
    if tuple(answers.shape) not in known:
        raise expected(
            "the answers of the network", f"of shape {wanted} (time, batch, output_size)", tuple(answers.shape)
        )
