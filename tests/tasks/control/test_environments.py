"""Environments of our own against plain loops over their rules, and their optima against policies written by hand."""

import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks import control


def returns(environment, policy, copies=200, seed=0):
    """Play the first episode of every copy; the policy sees the state."""
    worlds = environment.worlds(copies, seed)
    paid, over = torch.zeros(copies), torch.zeros(copies, dtype=torch.bool)
    for _ in range(environment.steps):
        reward, ended = worlds.step(policy(worlds))
        paid += torch.where(over, 0.0, reward)
        over |= ended
    assert over.all()  # no episode is longer than `steps`
    return paid


def test_t_maze_is_its_rules():
    """Every copy beside a walker with Python's own numbers."""
    maze = control.create("t-maze", corridor=3)
    worlds, generator = maze.worlds(20, seed=5), torch.Generator().manual_seed(0)
    cues = [0 if seen[0] else 1 for seen in worlds.observation]
    walkers = [{"place": 0, "time": 0, "cue": cue} for cue in cues]
    ends = 0
    for _ in range(60):
        for k, walker in enumerate(walkers):
            first, junction = walker["time"] == 0, walker["place"] == 3
            wanted = [first and walker["cue"] == 0, first and walker["cue"] == 1, not junction, junction]
            assert worlds.observation[k].tolist() == [float(one) for one in wanted]
        actions = torch.randint(3, (20,), generator=generator)
        reward, ended = worlds.step(actions)
        for k, walker in enumerate(walkers):
            walker["time"] += 1
            turned = walker["place"] == 3
            if actions[k] == 2 and walker["place"] < 3:
                walker["place"] += 1
            assert reward[k] == float(turned and actions[k] == walker["cue"])
            assert ended[k] == (turned or walker["time"] == 12)
            if ended[k]:
                ends += 1
                seen = worlds.observation[k]
                walkers[k] = {"place": 0, "time": 0, "cue": 0 if seen[0] else 1}
    assert ends > 40


def test_t_maze_optima():
    maze = control.create("t-maze", corridor=7)

    def remembers(worlds):
        return torch.where(worlds.state["place"] == 7, worlds.state["cue"], 2)

    def guesses(worlds):
        return torch.where(worlds.observation[:, 3] == 1, 0, 2)

    assert returns(maze, remembers).mean() == maze.optimum == 1
    share = returns(maze, guesses, copies=2000).mean().item()
    assert abs(share - maze.memoryless) < 4 * (0.25 / 2000) ** 0.5


def test_repeat_previous_is_its_rules_and_its_optima():
    game = control.create("repeat-previous", lag=3, symbols=5, length=10)
    worlds = game.worlds(6, seed=2)
    shown, ends = [[] for _ in range(6)], 0
    for _ in range(35):
        for k in range(6):
            assert worlds.observation[k].sum() == 1
            shown[k].append(int(worlds.observation[k].argmax()))
        actions = torch.tensor([shown[k][-4] if len(shown[k]) > 3 else 0 for k in range(6)])
        reward, ended = worlds.step(actions)
        for k in range(6):
            assert reward[k].item() == pytest.approx(1 / 7 if len(shown[k]) > 3 else 0.0)
            assert ended[k] == (len(shown[k]) == 10)
            if ended[k]:
                shown[k], ends = [], ends + 1
    assert ends == 18
    assert returns(game, lambda worlds: worlds.state["shown"][:, 0].clamp(min=0)).mean().item() == pytest.approx(1)
    blind = returns(game, lambda worlds: torch.zeros(2000, dtype=torch.int64), copies=2000)
    assert abs(blind.mean().item() - game.memoryless) < 4 * (0.2 * 0.8 / 2000 / 7) ** 0.5
    assert game.limits() == (1, 9)
    assert game.limits("symbols") == (2, None)
    assert game.harder(5).lag == 5


@pytest.mark.parametrize("name", ["t-maze", "repeat-previous"])
def test_what_is_drawn_ahead_is_the_same_chance_and_comes_back(name):
    """One draw of all steps and many of one, and copies that are taken up again in the middle."""
    environment = control.create(name)
    ahead, bit_by_bit = environment.worlds(7, seed=3), environment.worlds(7, seed=3)
    ahead.foresee(40)
    generator, kept = torch.Generator().manual_seed(1), None
    for t in range(40):
        if t == 17:
            kept = ahead.tensors()
            other = environment.worlds(7, seed=99)
            other.load(kept)
        actions = torch.randint(environment.actions, (7,), generator=generator)
        found = ahead.step(actions)
        for worlds in (bit_by_bit, *([other] if kept else [])):
            assert all(torch.equal(a, b) for a, b in zip(worlds.step(actions), found, strict=True))
            assert torch.equal(worlds.observation, ahead.observation)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: control.create("t-mase"), "there is no environment named 't-mase'; did you mean 't-maze'?"),
        (lambda: control.create("t-maze", length=3), "the environment t-maze has no setting 'length'; it has corridor"),
        (lambda: control.create("t-maze", corridor=0), "corridor must be a whole number of at least 1, got 0"),
        (
            lambda: control.create("repeat-previous", lag=4, length=4),
            "length must be a whole number of at least 5, got 4",
        ),
        (lambda: control.create("t-maze").worlds(0, 0), "count must be a positive integer, got 0"),
        (lambda: control.create("t-maze").worlds(1, -1), "seed must be a whole number that is not negative, got -1"),
        (lambda: ms.tasks.create("t-maze"), "t-maze is an environment, not a task"),
        (lambda: ms.tasks.problem("t-mase"), "there is no task or environment named 't-mase'; did you mean 't-maze'?"),
        (lambda: ms.tasks.problem("copi"), "there is no task named 'copi'; did you mean 'copy'?"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_nobody_knows_the_optimum_of_a_strangers_environment():
    class Mine(control.TensorEnvironment):
        name = "mine"
        input_size = actions = steps = 1
        draw = begin = observe = turn = None

    mine = Mine()
    assert mine.baseline != mine.baseline
    assert mine.trials() == (control.Trial("mine", mine),)
    with pytest.raises(UserError, match="mine has no setting that makes it harder"):
        mine.harder(3)
