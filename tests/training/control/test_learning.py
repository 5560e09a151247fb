"""Training in environments as a user calls it: recorded, resumed, searched, refused; and what is learned."""

import os
import random
import signal
import time

import pytest
import torch

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.nn import Stack
from mnemoscope.tasks import control
from mnemoscope.training import capacity, fit, ppo, resume

MAZE = control.create("t-maze", corridor=2)
BRIEF = {"iterations": 6, "worlds": 4, "frames": 16, "recurrence": 8, "burn_in": 4, "test_size": 8, "log_every": 1}


def layer(seed=0, size=6, inputs=4):
    return ms.nn.LSTM(inputs, size, generator=torch.Generator().manual_seed(seed))


def same(one, other):
    assert one.metrics == other.metrics
    assert one.ending == other.ending
    for a, b in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def killed(folder, seconds):
    child = os.fork()
    if child == 0:
        try:
            ppo(layer(), MAZE, folder=folder, checkpoint_every=1, validate_every=2, **BRIEF)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_and_compare(folder, points):
    ppo(layer(), MAZE, **BRIEF)
    start = time.perf_counter()
    whole = ppo(layer(), MAZE, folder=folder / "whole", checkpoint_every=1, validate_every=2, **BRIEF)
    duration, chance, hits = time.perf_counter() - start, random.Random(3), 0
    for k in range(points):
        place = folder / f"killed-{k}"
        hits += killed(place, duration * chance.random())
        same(ppo(layer(), MAZE, folder=place, checkpoint_every=1, validate_every=2, **BRIEF), whole)
        assert runs.load(place).metrics == runs.load(folder / "whole").metrics
    assert hits > 0


def test_a_killed_run_ends_as_one_that_was_not(tmp_path):
    kill_and_compare(tmp_path, 2)


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    kill_and_compare(tmp_path, 20)


def stopped_at(step):
    def look(moment):
        if moment.step == step:
            raise KeyboardInterrupt

    return look


@pytest.mark.parametrize("name", ["t-maze", "minigrid"])
def test_a_run_is_resumed_from_its_record_alone(name, tmp_path):
    """Rooms of a stranger's engine are taken up again as well: by the seed of the episode and what was done in it."""
    if name == "minigrid":
        pytest.importorskip("minigrid", reason="needs the extra mnemoscope[control]")
    environment = control.create(name, **({"larger": "none", "level": "Empty-5x5"} if name == "minigrid" else {}))
    brief = BRIEF | {"iterations": 3, "checkpoint_every": 1, "test_size": 2, "worlds": 2}
    inputs = environment.input_size
    whole = ppo(layer(inputs=inputs), environment, folder=tmp_path / "whole", **brief)
    with pytest.raises(KeyboardInterrupt):
        ppo(layer(inputs=inputs), environment, folder=tmp_path / "cut", callbacks=[stopped_at(2)], **brief)
    same(resume(tmp_path / "cut"), whole)
    same(resume(tmp_path / "cut"), whole)  # one that has ended is read


def test_time_that_is_up_is_not_the_end(tmp_path):
    whole = ppo(layer(), MAZE, folder=tmp_path / "whole", **BRIEF)
    with pytest.raises(runs.OutOfBudget):
        ppo(layer(), MAZE, folder=tmp_path / "cut", until=time.monotonic() - 1, **BRIEF)
    assert runs.load(tmp_path / "cut").status == "budget"
    same(ppo(layer(), MAZE, folder=tmp_path / "cut", **BRIEF), whole)


def test_settings_are_recorded_and_others_refused(tmp_path):
    run = ppo(layer(), MAZE, folder=tmp_path / "run", **BRIEF)
    spec = runs.load(run.folder).spec
    assert spec["ppo"]["recurrence"] == 8
    assert spec["task"] == {"name": "t-maze", "settings": {"corridor": 2}}
    assert spec["training"]["optimizer"] == "adam"
    with pytest.raises(UserError, match=r"has another configuration: ppo\.clip is 0\.2 there and 0\.3 here"):
        ppo(layer(), MAZE, folder=tmp_path / "run", clip=0.3, **BRIEF)


def test_seeds_decide_everything_and_global_chance_nothing():
    torch.manual_seed(1)
    first = ppo(layer(), MAZE, **BRIEF)
    torch.manual_seed(2)
    same(ppo(layer(), MAZE, **BRIEF), first)
    assert ppo(layer(), MAZE, seed=1, **BRIEF).metrics != first.metrics


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
@pytest.mark.parametrize("name", ["lstm", "rellstm", "transformer", "ntm", "matntm"])
def test_precisions(name, precision):
    options = {"buffer": 2, "relevant": 2} if name == "rellstm" else {}
    made = ms.nn.NetworkSpec(name, input_size=4, hidden_size=8, options=options, seed=0).build()
    run = ppo(made, MAZE, precision=precision, **BRIEF)
    assert next(run.model.parameters()).dtype == (torch.float64 if precision == "float64" else torch.float32)
    assert 0 <= run.score <= 1
    twin = ms.nn.NetworkSpec(name, input_size=4, hidden_size=8, options=options, seed=0).build()
    close = ppo(twin, MAZE, **BRIEF)  # the first rollout is nearly that of float32
    assert run.metrics[0]["loss"] == pytest.approx(close.metrics[0]["loss"], abs=0.03)


def test_a_machine_of_matrices_plays_in_bfloat16():
    options = {"input_size": (2, 2), "hidden_size": (2, 2), "memory": (3, 2, 2)}
    run = ppo(
        ms.nn.create("matntm", **options, generator=torch.Generator().manual_seed(0)),
        MAZE,
        precision="bfloat16",
        **BRIEF,
    )
    assert 0 <= run.score <= 1


def test_a_diverging_run_says_so(tmp_path):
    with pytest.raises(ms.training.Diverged, match="not finite at step 1; lower the learning rate"):
        ppo(layer(), MAZE, folder=tmp_path / "run", **(BRIEF | {"lr": 1e38, "clip_norm": 1e38}))


def test_capacity_over_the_corridor(tmp_path):
    """A search stops where one update no longer suffices, and the same call reads its record."""

    def search():
        settings = {"worlds": 4, "frames": 16, "test_size": 8, "validation_size": 8}
        return capacity("gru", "t-maze", hidden_size=4, seeds=2, iterations=1, grid=[1, 2], folder=tmp_path, **settings)

    found = search()
    assert (found.axis, found.limit, found.levels.tolist()) == ("corridor", None, [1, 2])
    assert search().scores.tolist() == found.scores.tolist()
    assert (tmp_path / "level-1" / "seed-1").is_dir()


class Blind(Stack):
    """A network that forgets at once: its state is not read."""

    def declare(self, layer):
        self.parameter("weight_ih", self.hidden_size, layer.input_size, role="input")
        self.parameter("bias", self.hidden_size, role="bias")

    def advance(self, w, a, state):
        h = torch.tanh(a)
        return h, h


LEARNED = {
    "t-maze": ({"corridor": 6}, {"iterations": 50, "batch_size": 512}),
    "repeat-previous": ({"lag": 2}, {"iterations": 60, "worlds": 32, "frames": 64, "batch_size": 512, "discount": 0.5}),
}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", LEARNED)
def test_memory_finds_the_optimum_and_no_memory_stays_at_chance(name):
    settings, course = LEARNED[name]
    environment = control.create(name, **settings)
    found = ppo(layer(size=32), environment, test_size=400, **course)
    assert found.score == pytest.approx(environment.optimum)
    blind = ppo(Blind(4, 32, generator=torch.Generator().manual_seed(0)), environment, test_size=400, **course)
    p, answers = environment.memoryless, 400 if name == "t-maze" else 400 * 32
    assert abs(blind.score - p) < 4 * (p * (1 - p) / answers) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ms.nn.names(kind="recurrent"))
def test_every_recurrent_network_acts(name):
    """An update of each with its default options, and a test; sizes that a network rounds are its own affair."""
    made = ms.nn.NetworkSpec(name, input_size=4, hidden_size=8, seed=0).build()
    run = ppo(made, MAZE, iterations=1, worlds=2, frames=8, recurrence=4, test_size=2)
    assert run.status == "finished"


@pytest.mark.parametrize(
    ("network", "settings", "message"),
    [
        ("corelnet", {}, "control needs a network with a step, and corelnet answers once"),
        ("block", {}, "control needs a network with a step, and Conv has no state"),
        ("both", {}, "control needs a causal network, and this one is not: it is bidirectional"),
        ("wide", {}, "input_size of the layer must be 4, as the environment t-maze has, got 5"),
        ("lstm", {"recurrence": 5}, "recurrence must be a divisor of frames = 16, got 5"),
        ("lstm", {"burn_in": 17}, "burn_in must be at most frames = 16, got 17"),
        ("lstm", {"discount": 1.5}, "discount must be a number from 0 to 1, got 1.5"),
        ("lstm", {"clip": "much"}, "clip must be a number from 0 on, got 'much'"),
        ("lstm", {"worlds": 0}, "worlds must be a positive integer, got 0"),
        ("lstm", {"epoch": 3}, "training in an environment has no setting 'epoch'; did you mean 'epochs'?"),
        ("lstm", {"truncate": 3}, "training in an environment has no setting 'truncate'; "),
    ],
)
def test_bad_input(network, settings, message):
    class Conv(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.mix(x)

    made = {
        "corelnet": lambda: ms.nn.create("corelnet", panels=3, answers=2, input_size=(1, 8, 8)),
        "block": lambda: ms.adapt(Conv(), kind="sequence"),
        "both": lambda: ms.nn.LSTM(4, 4, bidirectional=True),
        "wide": lambda: ms.nn.LSTM(5, 4),
        "lstm": layer,
    }[network]()
    with pytest.raises(UserError) as caught:
        ppo(made, MAZE, iterations=1, **({"frames": 16} | settings))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_fit_names_the_way_to_environments():
    with pytest.raises(
        UserError, match=r"t-maze is an environment, not a task: .*mnemoscope\.training\.ppo trains in it"
    ):
        fit(layer(), "t-maze", iterations=1)
    with pytest.raises(UserError, match="environment must be the name of an environment or an Environment, got a int"):
        ppo(layer(), 3, iterations=1)
