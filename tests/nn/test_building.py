"""Networks from what a person names: which arguments they get, and what is said when these do not fit."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.building import build, construct


class ByName(nn.GRUCell):
    def __init__(self, hidden_size, input_size=7):
        super().__init__(input_size, hidden_size)


class ByPlace(nn.GRUCell):
    def __init__(self, d, n):
        super().__init__(d, n)


class LowRank(nn.GRUCell):
    def __init__(self, input_size, hidden_size, rank, *, gain):
        super().__init__(input_size, hidden_size)


def fixed():
    return nn.GRUCell(2, 3)


@pytest.mark.parametrize(
    ("what", "sizes", "found"),
    [
        ("rnn", {}, (1, 64)),
        ("rnn", {"hidden_size": 5}, (1, 5)),
        (ByName, {"hidden_size": 5}, (1, 5)),
        (ByPlace, {"hidden_size": 5, "input_size": 2}, (2, 5)),
        (fixed, {}, (2, 3)),
        (lambda **sizes: nn.GRUCell(sizes["input_size"], sizes["hidden_size"]), {"hidden_size": 4}, (1, 4)),
    ],
)
def test_sizes_go_by_name_then_by_place_then_not_at_all(what, sizes, found):
    network = build(what, sizes, {}, 0)
    assert (network.input_size, network.hidden_size) == found


def test_a_seed_draws_the_weights_and_leaves_torchs_random_numbers():
    before = torch.random.get_rng_state()
    a, b, c = (build(ByPlace, {"hidden_size": 3}, {}, seed).module.weight_hh for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_saved_network_keeps_its_weights(tmp_path):
    layer = ms.nn.RNN(2, 3)
    ms.nn.save(layer, tmp_path / "x.safetensors")
    assert torch.equal(build(str(tmp_path / "x.safetensors"), {}, {}, 5).weight_hh_l0, layer.weight_hh_l0)


@pytest.mark.parametrize(
    ("what", "sizes", "options", "said"),
    [
        (
            LowRank,
            {},
            {},
            "LowRank also needs rank and gain; add --set rank=.. --set gain=.. (in Python rank=.., gain=..)",
        ),
        (LowRank, {}, {"rank": 8}, "LowRank also needs gain; add --set gain=.. (in Python gain=..)"),
        (LowRank, {}, {"rank": 8, "gian": 2}, "LowRank takes no 'gian'; did you mean 'gain'?"),
        (ByName, {}, {"zzz": 1}, "ByName takes no 'zzz'; it is called as ByName(hidden_size, input_size=7)"),
        (fixed, {"hidden_size": 3}, {}, "fixed cannot be built with hidden_size: it is called as fixed()"),
        (lambda: 3, {}, {}, "<lambda> must be a class or a function that builds a torch.nn.Module, got 3"),
        (nn.GRUCell(1, 2), {}, {}, "GRUCell must be a class or a function that builds a network"),
    ],
)
def test_arguments_that_do_not_fit(what, sizes, options, said):
    with pytest.raises(UserError) as raised:
        construct(what, sizes, options)
    assert str(raised.value).startswith(said)
