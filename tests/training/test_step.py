"""A step of training against a plain loop over the same network with torch's own optimiser."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mnemoscope as ms
from mnemoscope.training import fit, stream

TASKS = {
    "copy": {"delay": 5},
    "lag-copy": {"length": 8, "lag": 3},
    "adding": {"length": 12},
    "start-end-similarity": {"length": 12, "symbols": 4, "alphabet": 4},
}


def plain_loop(layer, task, *, iterations, batch_size, make, seed, clip_norm=None, rates=(1e-3, 1e-4), loss=None):
    """Train as a person would write it, float64."""
    layer.double()
    readout = nn.Linear(layer.output_size, task.output_size).double()
    generator = stream(seed, "readout")
    with torch.no_grad():
        for parameter in readout.parameters():  # as training draws them: in float32
            drawn = torch.empty(parameter.shape).uniform_(
                -(layer.output_size**-0.5), layer.output_size**-0.5, generator=generator
            )
            parameter.copy_(drawn)
    groups = [*layer.parameter_groups(*rates), {"params": list(readout.parameters()), "lr": rates[0]}]
    optimiser = make(groups)
    batches = stream(seed, "batches")
    for _ in range(iterations):
        batch = task.sample(batch_size, batches)
        output, _ = layer(batch.inputs.double())
        answers = readout(output)
        total = (loss or task.loss)(answers, batch) + layer.penalty()
        optimiser.zero_grad()
        total.backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_([*layer.parameters(), *readout.parameters()], clip_norm)
        optimiser.step()
        layer.after_step()
    return layer, readout


def close(run, layer, readout):
    for ours, theirs in zip(
        [*run.model.layer.parameters(), *run.model.readout.parameters()],
        [*layer.parameters(), *readout.parameters()],
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def twins(name, task, **options):
    made = [
        ms.nn.create(
            name, input_size=task.input_size, hidden_size=6, generator=torch.Generator().manual_seed(5), **options
        )
        for _ in range(2)
    ]
    return made[0], made[1]


@pytest.mark.parametrize("task_name", TASKS)
@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_twenty_steps_are_those_of_the_plain_loop(task_name, optimizer):
    task = ms.tasks.create(task_name, **TASKS[task_name])
    ours, theirs = twins("rnn", task)
    make = torch.optim.RMSprop if optimizer == "rmsprop" else torch.optim.Adam
    run = fit(
        ours,
        task,
        iterations=20,
        batch_size=7,
        optimizer=optimizer,
        seed=3,
        precision="float64",
        data="fresh",
        test_size=10,
    )
    close(run, *plain_loop(theirs, task, iterations=20, batch_size=7, make=make, seed=3))


@pytest.mark.parametrize("name", ["scornn", "nnrnn", "lstm", "exprnn", "soft-orth", "full-urnn"])
def test_orthogonal_rates_penalties_and_what_follows_a_step(name):
    task = ms.tasks.create("copy", delay=5)
    options = {"rebase": 7} if name == "exprnn" else {}
    ours, theirs = twins(name, task, **options)
    run = fit(
        ours,
        task,
        iterations=20,
        batch_size=7,
        lr=2e-3,
        lr_orthogonal=5e-4,
        alpha=0.9,
        clip_norm=0.05,
        precision="float64",
        test_size=10,
    )
    close(
        run,
        *plain_loop(
            theirs,
            task,
            iterations=20,
            batch_size=7,
            seed=0,
            rates=(2e-3, 5e-4),
            clip_norm=0.05,
            make=lambda groups: torch.optim.RMSprop(groups, alpha=0.9),
        ),
    )


def test_momentum_and_an_own_loss():
    task = ms.tasks.create("copy", delay=5)

    def loss(answers, batch):
        return F.mse_loss(answers, F.one_hot(batch.targets, 9).to(answers.dtype))

    ours, theirs = twins("rnn", task)
    run = fit(ours, task, iterations=20, batch_size=7, momentum=0.9, loss=loss, precision="float64", test_size=10)
    make = lambda groups: torch.optim.RMSprop(groups, momentum=0.9)  # noqa: E731
    close(run, *plain_loop(theirs, task, iterations=20, batch_size=7, make=make, seed=0, loss=loss))


def test_a_penalty_weight_of_zero_leaves_it_out():
    task = ms.tasks.create("copy", delay=5)
    ours, theirs = twins("nnrnn", task, delta=1.0)
    run = fit(ours, task, iterations=5, batch_size=7, penalty=0.0, precision="float64", test_size=10)
    theirs.penalty = lambda: 0.0
    make = torch.optim.RMSprop
    close(run, *plain_loop(theirs, task, iterations=5, batch_size=7, make=make, seed=0))


def test_the_state_is_carried_over_windows_of_a_text(tmp_path):
    """Truncated backpropagation: gradients stop at a window's start, the state does not."""
    task = shakespeare(tmp_path)
    layer = ms.nn.RNN(5, 6, generator=torch.Generator().manual_seed(1))
    twin = ms.nn.RNN(5, 6, generator=torch.Generator().manual_seed(1)).double()
    run = fit(layer, task, iterations=30, batch_size=3, truncate=20, precision="float64", validate_every=0)
    generator = stream(0, "readout")
    table = torch.empty(task.embedding, 5).uniform_(-0.1, 0.1, generator=generator)
    embedding = nn.Embedding.from_pretrained(table.double(), freeze=False)
    readout = nn.Linear(6, task.output_size).double()
    with torch.no_grad():
        for parameter in readout.parameters():
            parameter.copy_(torch.empty(parameter.shape).uniform_(-(6**-0.5), 6**-0.5, generator=generator))
    optimiser = torch.optim.RMSprop([*twin.parameters(), *embedding.parameters(), *readout.parameters()], lr=1e-3)
    done, state = 0, None
    while done < 30:
        state = None
        for batch in task.windows("train", 3, 20):
            if done == 30:
                break
            output, state = twin(embedding(batch.inputs), state)
            state = state.detach()
            optimiser.zero_grad()
            task.loss(readout(output), batch).backward()
            optimiser.step()
            done += 1
    close(run, twin, readout)
    torch.testing.assert_close(run.model.embedding.weight, embedding.weight, rtol=0, atol=1e-10)
    assert run.tests["test"]["bpc"] == pytest.approx(run.loss / 0.6931471805599453)


def shakespeare(folder):
    from mnemoscope.tasks.datasets import DATASETS

    dataset = DATASETS["tinyshakespeare"]
    text = "to be or not to be, that is the question. " * 60
    (folder / dataset.folders[0]).mkdir(exist_ok=True)
    (folder / dataset.folders[0] / dataset.files[0].name).write_text(text)
    return ms.tasks.create("shakespeare", length=20, data=str(folder), verify=False)
