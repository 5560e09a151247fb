"""Devices: a step of training waits for none, and makes nothing on another; what is read from one is counted.

Nothing can be read from the device ``"meta"``, and nothing on the processor can be combined with what is there: a step
that succeeds on it has no hidden transfer. With ``"meta"`` as the default device, a tensor that is made without naming
its device is found out.
"""

import math

import pytest
import torch
from torch.overrides import TorchFunctionMode

import mnemoscope as ms
from mnemoscope.core.seeds import stream
from mnemoscope.training import Options, build_model, fit
from mnemoscope.training.cohort import CohortStep
from mnemoscope.training.step import Step

SHAPED = {
    "matntm": {"input_size": (5, 5), "hidden_size": (4, 4), "memory": (6, 3, 3)},
    "matrix-queue": {"input_size": 1, "hidden_size": (3, 3)},
    "matrixlstm": {"input_size": (5, 5), "hidden_size": (4, 4)},
    "matrixrnn": {"input_size": (5, 5), "hidden_size": (4, 4)},
}
"""Sizes of networks of matrices."""

RELATIONAL = ms.nn.names("relational")

LOOKS = {
    "exprnn": "the norm of its matrix says how often the exponential squares",
    "goru": "as exprnn",
    "nnrnn": "as exprnn",
    "memlstm": "how full its memory is",
    "memrnn": "as memlstm",
    "rellstm": "as memlstm",
    "relrnn": "as memlstm",
    "sab": "as memlstm",
}
"""Networks that read a number or two once a forward pass, however long it is, and why."""

COPY = ms.tasks.create("copy", delay=5)
FREE = [name for name in ms.nn.names("recurrent") if name not in {*SHAPED, *LOOKS}]
READS = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "nonzero", "equal"}


class Reads(TorchFunctionMode):
    """Counts calls that wait for a device and bring numbers from it."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += getattr(function, "__name__", "") in READS
        return function(*args, **(kwargs or {}))


def problem(name):
    """Return a small task of the sort that a network reads."""
    if name in RELATIONAL:
        return ms.tasks.create("same-different", images="own")
    if name in SHAPED:
        numbers = name == "matrix-queue"
        return (
            ms.tasks.create("parity", dimensions=1, length=4) if numbers else ms.tasks.create("matrix-copy", longest=3)
        )
    return COPY


def sizes(name, task):
    """Return what a network is built with."""
    if name in RELATIONAL:
        return {"input_size": task.input_shape, "panels": task.steps, "answers": task.output_size}
    return SHAPED.get(name) or {"input_size": task.input_size if task.embedding is None else 4, "hidden_size": 8}


def stepped(name, task, readout="linear", where="cpu", **settings):
    bidirectional = {"bidirectional": True} if settings.pop("both_ways", False) else {}
    layer = ms.nn.create(name, generator=stream(0, "layer"), **sizes(name, task), **bidirectional)
    model = build_model(layer, task, readout, stream(0, "readout")).to(where)
    return Step(model, task, Options.make({"iterations": 5, "lr": 1e-3, **settings}))


def drawn(task, size=3):
    return task.sample(size, stream(1, "batches"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FREE, *SHAPED, *(name for name in RELATIONAL if name != "relational-ntm")])
def test_a_step_of_training_brings_nothing_back(name):
    # relational-ntm asks whether numbers are of mixed precision, which cannot be asked of this device.
    task = problem(name)
    assert stepped(name, task, where="meta").advance(drawn(task)).device.type == "meta"


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "lr_state_space": 1e-4},
        {"optimizer": "adam", "clip_norm": 1.0},
        {"momentum": 0.9, "clip_value": 1.0, "clip_largest": 1.0},
    ],
)
@pytest.mark.parametrize(
    ("task", "own", "readout", "both_ways"),
    [
        ("copy", {"delay": 5}, "linear", True),
        ("mqar", {"pairs": 3, "length": 14, "vocabulary": 10}, "linear", False),
        ("parity", {"length": 6}, "linear", False),
        ("matrix-copy", {"longest": 4}, "linear", True),
        ("adding", {"length": 7}, "linear", False),
        ("listops", {"longest": 24, "shortest": 3}, "linear", False),
        ("listops", {"longest": 24, "shortest": 3}, "mean", True),
    ],
)
def test_no_task_and_no_optimiser_brings_anything_back(task, own, readout, both_ways, settings):
    task = ms.tasks.create(task, **own)
    step = stepped("s4", task, readout, "meta", both_ways=both_ways, **settings)
    assert step.advance(drawn(task)).device.type == "meta"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOKS)
def test_what_is_read_does_not_grow_with_the_steps(name):
    counts = []
    for delay in (5, 40):
        task = ms.tasks.create("copy", delay=delay)
        step, batch = stepped(name, task), drawn(task)
        with Reads() as reads:
            step.advance(batch)
        counts.append(reads.count)
    assert counts[0] == counts[1] <= (3 if name == "sab" else 2), LOOKS[name]  # one of the mask, where it was drawn


@pytest.mark.parametrize("name", ["copy", "listops"])
def test_the_loop_reads_one_number_a_step(name):
    task = COPY if name == "copy" else ms.tasks.create("listops", longest=24, shortest=3)
    step, batch = stepped("rnn", task), drawn(task)
    with Reads() as once:
        step.advance(batch)
    with Reads() as reads:
        step.train(batch)
    assert reads.count == once.count + 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FREE, *LOOKS, *SHAPED, *RELATIONAL])
def test_nothing_is_made_on_another_device(name):
    task = problem(name)
    here, there = stepped(name, task), stepped(name, task)
    batch = drawn(task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plain = here.advance(batch)
        torch.manual_seed(0)
        with torch.device("meta"):
            found = there.advance(batch)
    assert torch.equal(found, plain)
    for a, b in zip(here.parameters, there.parameters, strict=True):
        assert torch.equal(a, b)


def test_a_population_makes_nothing_on_another_device():
    models = [build_model(ms.nn.RNN(10, 4), COPY, "linear", stream(seed, "readout")) for seed in range(2)]
    options = [Options(iterations=3, lr=1e-3, seed=seed) for seed in range(2)]
    steps = [CohortStep(models, COPY, options) for _ in range(2)]
    batches = [drawn(COPY), drawn(COPY)]
    plain = steps[0](batches)
    with torch.device("meta"):
        assert steps[1](batches) == plain


@pytest.mark.parametrize("name", ["copy", "parity", "adding", "mqar", "start-end-similarity", "matrix-copy", "dyck"])
def test_a_batch_is_drawn_without_a_loop_over_sequences(name):
    task = ms.tasks.create(name)
    counts = []
    for size in (2, 64):
        with torch.device("meta"), Reads() as reads:
            batch = task.sample(size, torch.Generator().manual_seed(0))
        assert {part.device.type for part in (batch.inputs, batch.targets, batch.mask, batch.lengths)} == {"cpu"}
        counts.append(reads.count)
    assert counts[0] == counts[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FREE, *LOOKS, *SHAPED, *RELATIONAL, "gru on listops"])
def test_losses_in_bfloat16_are_those_in_float32(name):
    name, _, listops = name.partition(" on ")
    task = ms.tasks.create(listops, longest=24, shortest=3) if listops else problem(name)
    losses = {}
    for precision in ("float32", "bfloat16"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            step = stepped(name, task, "mean" if listops else "linear", precision=precision)
            losses[precision] = [step.train(drawn(task, 16)) for _ in range(3)]
        assert {p.dtype for p in step.parameters} == {torch.float32}
    assert all(math.isfinite(loss) for loss in losses["bfloat16"])
    same = 1 if name in RELATIONAL else 3  # steps after which a convolutional encoder has made much of the rounding
    assert losses["bfloat16"][:same] == pytest.approx(losses["float32"][:same], rel=0.02)


def test_a_device_that_is_not_there_is_one_line():
    with pytest.raises(ms.core.errors.UserError, match=r"device must be a device of this machine, such as 'cpu', got"):
        fit(ms.nn.RNN(10, 4), COPY, iterations=1, device="cuda:7")
    with pytest.raises(ms.core.errors.UserError, match=r"device must be a device of this machine.*it holds no numbers"):
        fit(ms.nn.RNN(10, 4), COPY, iterations=1, device="meta")
