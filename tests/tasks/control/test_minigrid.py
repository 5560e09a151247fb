"""MiniGrid beside its own engine; skipped where the extra is not installed."""

import sys

import pytest
import torch

from mnemoscope.core.errors import UserError
from mnemoscope.tasks import control
from mnemoscope.tasks.control import minigrid as home


def test_a_missing_engine_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid", None)
    home._levels.cache_clear()
    try:
        with pytest.raises(UserError, match=r"needs gymnasium and minigrid .*: pip install 'mnemoscope\[control\]'$"):
            control.create("minigrid")
    finally:
        home._levels.cache_clear()


@pytest.fixture
def gymnasium():
    pytest.importorskip("minigrid", reason="needs the extra mnemoscope[control]")
    return pytest.importorskip("gymnasium", reason="needs the extra mnemoscope[control]")


def test_rooms_are_those_of_the_engine(gymnasium):
    """The same seeds and actions in the engine itself; then the rooms are taken up again by what was done in them."""
    level = control.create("minigrid", level="Fetch-5x5-N2")
    worlds, generator = level.worlds(3, seed=4), torch.Generator().manual_seed(0)
    missions = home._facts(level.level).missions
    rooms = [gymnasium.make("MiniGrid-Fetch-5x5-N2-v0") for _ in range(3)]
    episodes = [0, 0, 0]
    seen = [room.reset(seed=home.seed_of(4, f"{k}/0") % 2**31)[0] for k, room in enumerate(rooms)]
    other = None
    for t in range(160):
        for k in range(3):
            assert torch.equal(worlds.observation.image[k], torch.from_numpy(seen[k]["image"]))
            assert missions[worlds.observation.mission[k]] == seen[k]["mission"]
        if t == 130:
            other = level.worlds(3, seed=4)
            other.load(worlds.tensors())
        actions = torch.randint(7, (3,), generator=generator)
        reward, ended = worlds.step(actions)
        if other is not None:
            assert all(torch.equal(a, b) for a, b in zip(other.step(actions), (reward, ended), strict=True))
            assert all(torch.equal(a, b) for a, b in zip(other.observation, worlds.observation, strict=True))
        for k, room in enumerate(rooms):
            seen[k], paid, terminated, truncated, _ = room.step(int(actions[k]))
            assert reward[k].item() == pytest.approx(paid)
            assert ended[k] == (terminated or truncated)
            if ended[k]:
                episodes[k] += 1
                seen[k] = room.reset(seed=home.seed_of(4, f"{k}/{episodes[k]}") % 2**31)[0]
    assert sum(episodes) > 3


def test_all_pairs_exist_and_share_their_missions(gymnasium):
    for small, large in home.PAIRS.items():
        level = control.create("minigrid", level=small)
        assert [trial.label for trial in level.trials()] == [small, large]
        assert level.trials()[1].environment.input_size == level.input_size
        assert level.input_size == (192 if small[:2] in ("Go", "Fe") else 64)
        assert level.steps < level.trials()[1].environment.steps


def test_missions_are_read(gymnasium):
    """Features differ by the mission where there are several, and are those of one at a time."""
    level = control.create("minigrid", level="GoToDoor-5x5")
    encoder = level.encoder(torch.Generator().manual_seed(0))
    sight = level.worlds(4, seed=0).observation
    whole = encoder(home.Sight(sight.image.expand(2, 4, 7, 7, 3), sight.mission.expand(2, 4)))
    assert whole.shape == (2, 4, 192)
    for k in range(4):
        torch.testing.assert_close(
            whole[1, k], encoder(home.Sight(sight.image[k : k + 1], sight.mission[k : k + 1]))[0]
        )
    twice = encoder(home.Sight(sight.image[:1].expand(2, 7, 7, 3), torch.tensor([0, 1])))
    assert torch.equal(twice[0, :64], twice[1, :64])
    assert not torch.allclose(twice[0, 64:], twice[1, 64:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "DoorKy-5x5"}, "MiniGrid has no level 'DoorKy-5x5'; did you mean 'DoorKey-5x5'?"),
        ({"larger": "nowhere at all"}, "MiniGrid has no level 'nowhere at all'; there are RedBlueDoors-6x6"),
        ({"larger": "Fetch-8x8-N3"}, "larger must be a level with the missions of DoorKey-5x5, got 'Fetch-8x8-N3'"),
    ],
)
def test_bad_levels(settings, message, gymnasium):
    with pytest.raises(UserError) as caught:
        control.create("minigrid", **settings)
    assert str(caught.value).startswith(message)
