"""Recurrent PPO beside plain loops over its equations."""

import copy
import math

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import mnemoscope as ms
from mnemoscope.core.seeds import stream
from mnemoscope.tasks import control
from mnemoscope.training import Options
from mnemoscope.training.control.advantage import advantages
from mnemoscope.training.control.agent import answers, build_agent, room
from mnemoscope.training.control.improvement import Improvement, burnt_in, cut, minibatch, objective
from mnemoscope.training.control.playing import Player, mean_return
from mnemoscope.training.control.settings import PPO

MAZE = control.create("t-maze", corridor=3)
NETWORKS = {
    "lstm": {},
    "exprnn": {},
    "rellstm": {"buffer": 2, "relevant": 2},
    "memlstm": {},
    "mamba": {},
    "lru": {},
    "transformer": {},
}


def player(name="lstm", environment=MAZE, seed=0, precision="float64", **settings):
    settings = {"worlds": 3, "frames": 12, "recurrence": 4, **settings}
    spec = ms.nn.NetworkSpec(name, input_size=environment.input_size, hidden_size=8, options=NETWORKS[name], seed=seed)
    model = build_agent(spec.build(), environment, stream(seed, "readout")).to(getattr(torch, precision))
    options = Options(iterations=1, batch_size=16, optimizer="adam", seed=seed)
    return Player(model, environment, options, PPO(**settings).within(environment))


def slowly(model, rollout, copies, until, first=0, state=None):
    """Answers to the steps of a rollout, one copy and one step at a time, states renewed where an episode begins."""
    layer, found = model.layer, []
    state = layer.init_state(1, dtype=torch.float64) if state is None else state
    for t in range(first, until):
        if bool(rollout.context.begins[t, copies]):
            state = layer.init_state(1, dtype=torch.float64)
        x = rollout.context.seen[t, copies].unsqueeze(0)
        y, state = layer.step(x, state)
        found.append(model.answers(y))
    return torch.cat(found), state


def test_advantage_is_the_sum_over_the_rest_of_the_episode():
    """By the definition: A_t = sum_k (gamma lambda)^k d_{t+k}, up to the end of the episode."""
    generator = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(2, 9, 4, generator=generator, dtype=torch.float64)
    last = torch.randn(4, generator=generator, dtype=torch.float64)
    ended = torch.rand(9, 4, generator=generator) < 0.3
    found = advantages(rewards, values, ended, last, 0.9, 0.7)
    for b in range(4):
        for t in range(9):
            total, weight = 0.0, 1.0
            for k in range(t, 9):
                after = values[k + 1, b] if k < 8 else last[b]
                after = 0.0 if ended[k, b] else after
                total += weight * (rewards[k, b] + 0.9 * after - values[k, b])
                weight *= 0.9 * 0.7
                if ended[k, b]:
                    break
            assert found[t, b].item() == pytest.approx(float(total), abs=1e-12)


def test_true_values_leave_no_advantage_to_a_sure_policy():
    """Walking on and turning right: V of each step is gamma to the steps left, so that nothing was unexpected."""
    gamma, steps = 0.9, 8
    worlds = control.create("t-maze", corridor=3).worlds(5, seed=1)
    rewards, ended, values = [], [], []
    for t in range(steps):
        place, cue = worlds.state["place"], worlds.state["cue"]
        values.append(gamma ** (3 - place).double())
        reward, over = worlds.step(torch.where(place == 3, cue, 2))
        rewards.append(reward.double())
        ended.append(over)
        assert bool(over.all()) == (t % 4 == 3)
    last = torch.full((5,), gamma**3, dtype=torch.float64)
    for trace in (0.0, 0.5, 1.0):
        found = advantages(*map(torch.stack, (rewards, values, ended)), last, gamma, trace)
        torch.testing.assert_close(found, torch.zeros(steps, 5, dtype=torch.float64))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("burn_in", [0, 6])
def test_pieces_answer_as_the_whole_sequence_does_step_by_step(name, burn_in):
    """Minibatches of pieces, shuffled, against one copy after another from its first step on."""
    source = player(name, burn_in=burn_in)
    model = source.model
    for _ in range(3):
        rollout = source.next()
    assert rollout.context.begins[1:].any()  # episodes begin within
    chosen = torch.tensor([5, 0, 8, 3])
    begins = rollout.context.begins
    with room(model, source.steps), torch.no_grad():
        states = burnt_in(model, rollout, chosen, source.settings)
        pieces = cut(model, rollout, begins, chosen, states, source.settings)
        given = model.answers(model.hidden(pieces.seen, pieces.state)[0])[pieces.times, pieces.pieces]
        for place, number in enumerate(chosen.tolist()):
            k, copy_ = divmod(number, 3)
            axis = model.layer.batch_axis
            state = tree_map(lambda leaf: leaf.narrow(axis, copy_, 1), rollout.states[k])  # noqa: B023
            wanted, _ = slowly(model, rollout, copy_, 4 * k + burn_in + 4, 4 * k, state)
            torch.testing.assert_close(given[:, place], wanted[-4:], atol=1e-10, rtol=0)
        batch = minibatch(rollout, rollout.own.rewards, chosen, source.settings)
    logs, values = answers(given, given)
    torch.testing.assert_close(values, batch.values)  # what was said when it was played
    said = logs.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(said, batch.log_probabilities)


def test_the_first_state_of_an_episode_is_that_of_a_beginning():
    source = player("lstm", frames=24, recurrence=1)
    rollout = source.next()
    fresh = source.model.layer.init_state(1, dtype=torch.float64)
    beginning = 0
    for t, state in enumerate(rollout.states):
        for b in range(3):
            same = all(torch.equal(leaf[:, b : b + 1], new) for leaf, new in zip(state, fresh, strict=True))
            assert same == bool(rollout.own.begins[t, b])
            beginning += same
    assert 3 < beginning < 72
    assert torch.equal(rollout.own.begins[1:], rollout.own.ended[:-1])


def _held(x, least, most):
    return x if least <= x <= most else torch.tensor(least if x < least else most, dtype=x.dtype)


def test_gradient_is_that_of_the_equations():
    """The first minibatch against the formula written out for one action at a time, from probabilities."""
    source = player("lstm", worlds=2, frames=8, recurrence=8)
    twin = copy.deepcopy(source.model)
    rollout = source.next()
    with torch.no_grad():  # so that the probabilities differ from those of the rollout, some beyond the clip
        for p in source.model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(3), dtype=p.dtype))
        twin.load_state_dict(source.model.state_dict())
    settings = source.settings
    found = advantages(
        rollout.own.rewards, rollout.own.values, rollout.own.ended, rollout.last, settings.discount, settings.trace
    )
    gain, error, entropy, clipped = 0.0, 0.0, 0.0, 0
    for b in range(2):
        given, _ = slowly(twin, rollout, b, 8)
        for t in range(8):
            p = given[t, :-1].exp() / given[t, :-1].exp().sum()
            a, v = found[t, b], given[t, -1]
            ratio = p[rollout.own.actions[t, b]] / rollout.own.log_probabilities[t, b].exp()
            held = _held(ratio, 0.8, 1.2)
            clipped += bool(ratio * a > held * a)
            gain = gain + (ratio * a if ratio * a < held * a else held * a)
            old = rollout.own.values[t, b]
            reached = a + old
            near = old + _held(v - old, -0.2, 0.2)
            error = error + max((v - reached) ** 2, (near - reached) ** 2)
            entropy = entropy - sum(q * q.log() for q in p)
    assert 0 < clipped < 16
    loss = (-gain + 0.5 * error - 0.01 * entropy) / 16
    wanted = torch.autograd.grad(loss, list(twin.parameters()))
    chosen = torch.arange(2)
    states = burnt_in(source.model, rollout, chosen, settings)
    pieces = cut(source.model, rollout, rollout.context.begins, chosen, states, settings)
    logs, values = answers(source.model.answers(source.model.hidden(pieces.seen, pieces.state)[0]), found)
    logs, values = (part[pieces.times, pieces.pieces] for part in (logs, values))
    own = objective(logs, values, minibatch(rollout, found, chosen, settings), settings)
    assert own.item() == pytest.approx(loss.item(), abs=1e-12)
    for ours, theirs in zip(torch.autograd.grad(own, list(source.model.parameters())), wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-9)


def test_an_update_is_one_step_of_adam_down_the_whole_loss():
    """One pass, one minibatch: as torch's own Adam and clipping do it."""
    source = player("lstm", worlds=2, frames=8, recurrence=8, epochs=1)
    source.options.__dict__["clip_norm"] = 0.05
    twin, step, rollout = copy.deepcopy(source.model), Improvement(source), source.next()
    step([rollout])
    settings = source.settings
    found = advantages(
        rollout.own.rewards, rollout.own.values, rollout.own.ended, rollout.last, settings.discount, settings.trace
    )
    given = torch.stack([slowly(twin, rollout, b, 8)[0] for b in range(2)], dim=1)
    loss = objective(*answers(given, given), minibatch(rollout, found, torch.arange(2), settings), settings)
    adam = torch.optim.Adam(twin.parameters(), lr=1e-3, eps=1e-8)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.05)
    adam.step()
    for ours, theirs in zip(source.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


def test_actions_are_drawn_with_their_probabilities():
    source = player("lstm", worlds=400, frames=10, recurrence=10)
    rollout = source.next()
    first = rollout.own.actions[0][rollout.own.seen[0, :, 0] == 1]  # all who saw the same
    p = rollout.own.log_probabilities[0][rollout.own.seen[0, :, 0] == 1].exp()
    for action in range(3):
        share = (first == action).double().mean().item()
        wanted = p[first == action][0].item()
        assert abs(share - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / len(first))


class Recorded(ms.tasks.control.Worlds):
    """Worlds that pay by a script: the k-th copy ends its n-th episode after k + n steps, each step paying n."""

    def __init__(self, copies):
        self.left, self.episode = torch.arange(copies) + 1, torch.ones(copies)
        self.observation = torch.zeros(copies, 4)

    def foresee(self, steps):
        pass

    def step(self, actions):
        paid = self.episode.clone()
        self.left -= 1
        over = self.left == 0
        self.episode += over
        self.left[over] = 3
        return paid, over

    def tensors(self):
        return {}

    def load(self, tensors):
        pass


def test_a_test_counts_the_first_episode_of_every_copy():
    source = player("memlstm", environment=control.create("t-maze", corridor=30))
    found = mean_return(source.model, source.environment, Recorded(50), source.options)
    assert found == pytest.approx(sum(range(1, 51)) / 50)


def test_a_memory_that_grows_in_a_test_is_as_good_as_one_with_all_its_room():
    game = control.create("repeat-previous", lag=2, length=90)
    found = []
    for capacity in (None, 90):
        source = player("memlstm", environment=game, precision="float32")
        source.model.layer.capacity = capacity
        found.append(mean_return(source.model, game, game.worlds(20, seed=1), source.options))
        assert source.model.layer.capacity == capacity
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert 0 < found[0] < 1


def test_nothing_is_read_back_step_by_step():
    """Values that leave the device would show as _local_scalar_dense: as many for long rollouts as for short ones."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += func is torch.ops.aten._local_scalar_dense.default
            return func(*args, **(kwargs or {}))

    def reads(frames):
        source = player("lstm", frames=frames, recurrence=frames)
        with Reads() as mode:
            source.next()
        return mode.count

    assert reads(8) == reads(32)


def test_states_and_weights_come_back():
    """What is kept of a player and its improvement is all that the next rollout depends on."""
    source = player("rellstm", environment=control.create("repeat-previous", lag=2, length=6), burn_in=5)
    step = Improvement(source)
    step([source.next()])
    kept = {**{f"p/{k}": v for k, v in source.tensors().items()}, **{f"s/{k}": v for k, v in step.tensors().items()}}
    wanted = [source.next() for _ in range(2)]
    other = player("rellstm", environment=source.environment, burn_in=5, seed=0)
    again = Improvement(other)
    again.load({k[2:]: v for k, v in kept.items() if k.startswith("s/")})
    other.load({k[2:]: v for k, v in kept.items() if k.startswith("p/")})
    for rollout in wanted:
        pairs = zip(tree_leaves(rollout), tree_leaves(other.next()), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
