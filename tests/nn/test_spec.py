"""Descriptions of networks: one seed gives one set of weights, sizes reach every constructor, and records come back."""

import dataclasses
import json

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import stream
from mnemoscope.nn import NetworkSpec


class ByName(nn.GRUCell):
    def __init__(self, hidden_size, input_size=7):
        super().__init__(input_size, hidden_size)


class ByPlace(nn.GRUCell):
    def __init__(self, d, n):
        super().__init__(d, n)


class InAuthorsWords(nn.GRUCell):
    def __init__(self, nhid, expansion_factor=2, gamma=0.5, n_inp=3):
        assert (expansion_factor, gamma) == (2, 0.5)
        super().__init__(n_inp, nhid)


class OneWidth(nn.GRUCell):
    def __init__(self, d_model, mode="fast"):
        super().__init__(d_model, d_model)


class InAndOut(nn.GRUCell):
    def __init__(self, in_features, out_features, **more):
        assert not more
        super().__init__(in_features, out_features)


@dataclasses.dataclass
class TheirConfig:
    d_model: int
    d_state: int = 16


class Configured(nn.GRUCell):
    def __init__(self, config: TheirConfig):
        super().__init__(config.d_state, config.d_model)


class Namespaced(nn.GRUCell):
    def __init__(self, args):
        super().__init__(args.ninp, args.nhid)


class AddsItsInput(nn.GRUCell):
    def __init__(self, input_size, hidden_size):
        if input_size != hidden_size:
            raise ValueError("the input must be as wide as the state")
        super().__init__(input_size, hidden_size)


class Oscillator(nn.GRUCell):
    def __init__(self, n_inp, n_hid, dt, gamma, epsilon):
        assert (dt, gamma, epsilon) == (0.042, 2.7, 4.7)
        super().__init__(n_inp, n_hid)


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
        (InAuthorsWords, {"hidden_size": 5, "input_size": 2}, (2, 5)),
        (OneWidth, {"hidden_size": 5}, (5, 5)),
        (InAndOut, {"hidden_size": 5, "input_size": 2}, (2, 5)),
        (Configured, {"hidden_size": 5}, (16, 5)),
        (Namespaced, {"hidden_size": 5, "input_size": 2}, (2, 5)),
        (Oscillator, {"hidden_size": 5, "input_size": 2}, (2, 5)),
        (AddsItsInput, {"hidden_size": 5}, (5, 5)),
        (lambda **sizes: nn.GRUCell(sizes["input_size"], sizes["hidden_size"]), {"hidden_size": 4}, (1, 4)),
    ],
)
def test_sizes_go_by_meaning(what, sizes, found):
    network = NetworkSpec(what, **sizes).build()
    assert (network.input_size, network.hidden_size) == found


def test_what_was_filled_in_is_said():
    guesses = NetworkSpec(Oscillator, hidden_size=5).build().guesses
    assert "its argument dt was filled in: dt=0.042" in guesses
    assert "its configuration is TheirConfig(d_state=4, d_model=5)" in (
        NetworkSpec(Configured, hidden_size=5, options={"config.d_state": 4}).build().guesses
    )


def test_a_size_under_the_authors_own_word_is_enough():
    assert NetworkSpec(OneWidth, hidden_size=5, options={"d_model": 6}).build().hidden_size == 6


def test_a_seed_draws_the_weights_and_leaves_torchs_random_numbers():
    before = torch.random.get_rng_state()
    a, b, c = (NetworkSpec(ByPlace, hidden_size=3, seed=seed).build().module.weight_hh for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_saved_network_keeps_its_weights(tmp_path):
    layer = ms.nn.RNN(2, 3)
    ms.nn.save(layer, tmp_path / "x.safetensors")
    assert torch.equal(NetworkSpec(str(tmp_path / "x.safetensors"), seed=5).build().weight_hh_l0, layer.weight_hh_l0)


@pytest.mark.parametrize(
    ("what", "sizes", "options", "said"),
    [
        (
            LowRank,
            {},
            {},
            "LowRank also needs rank and gain; add --set rank=8 --set gain=8 (in Python rank=8, gain=8)",
        ),
        (LowRank, {}, {"rank": 8}, "LowRank also needs gain; add --set gain=8 (in Python gain=8)"),
        (LowRank, {}, {"rank": 8, "gian": 2}, "LowRank takes no 'gian'; did you mean 'gain'?"),
        (ByName, {}, {"zzz": 1}, "ByName takes no 'zzz'; it is called as ByName(hidden_size, input_size=7)"),
        (fixed, {"hidden_size": 3}, {}, "fixed cannot be built with hidden_size: it is called as fixed()"),
        (lambda: 3, {}, {}, "<lambda> must be a class or a function that builds a torch.nn.Module, got 3"),
        (5, {}, {}, "network must be a name, a file, a class, a function that builds one, or a module, got 5"),
        ("rnn", {"hidden_size": 0}, {}, "hidden_size must be a positive integer, got 0"),
        ("rnn", {"hidden_size": (3, 0)}, {}, "hidden_size must be a positive integer, got 0"),
        ("rnn", {"seed": -1}, {}, "seed must be a whole number that is not negative, got -1"),
        ("rnn", {"hidden_size": 3, "parameters": 90}, {}, "give hidden_size or parameters, not both: got 3 and 90"),
        ("rnn", {"parameters": 90, "count": "some"}, {}, "count must be 'recurrent' or 'all' or 'published'"),
        (nn.GRUCell(1, 2), {"hidden_size": 3}, {}, "hidden_size (--hidden) cannot be given"),
        ("x.safetensors", {}, {"rank": 3}, "rank (--set) cannot be given"),
        ("x.safetensors", {}, {}, "there is no file 'x.safetensors'"),
        ("x.pt", {}, {}, "'x.pt' is a pickle, which could run code"),
        ("nope", {}, {}, "there is no network named 'nope'"),
    ],
)
def test_arguments_that_do_not_fit(what, sizes, options, said):
    with pytest.raises(UserError) as raised:
        NetworkSpec(what, **sizes, options=options).build()
    assert str(raised.value).startswith(said)


def weights(network):
    return dict(network.named_parameters())


def of_vectors(name):
    return isinstance(ms.nn.get(name).small_sizes["hidden_size"], int)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", [name for name in ms.nn.names("recurrent") if of_vectors(name)])
def test_one_seed_one_set_of_weights_everywhere(name):
    """As `create` draws them from the seed's stream; in training, capacity and profile; in float64 as well."""
    sizes = {"input_size": 10, "hidden_size": 6}
    drawn = weights(NetworkSpec(name, **sizes, seed=3).build())
    assert same(drawn, weights(ms.nn.create(name, **sizes, generator=stream(3, "layer"))))
    experiment = ms.training.Experiment(
        {"name": name, "hidden_size": 6}, {"name": "copying"}, {"iterations": 1, "seed": 3}
    )
    assert same(drawn, weights(experiment.build_layer(experiment.build_task(), 3)))


def test_a_record_gives_the_same_network():
    spec = NetworkSpec("cprnn", input_size=2, hidden_size=5, rank=3, dtype=torch.float64, seed=7)
    again = NetworkSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert hash(again) == hash(spec)
    assert same(weights(again.build()), weights(spec.build()))
    assert NetworkSpec.from_dict(NetworkSpec(ms.nn.GRU, hidden_size=4).to_dict()).what == "gru"
    assert NetworkSpec.from_dict(NetworkSpec(nn.GRU, hidden_size=4).to_dict()).build().module.hidden_size == 4
    budget = NetworkSpec("scornn", input_size=34, parameters=2**13, count="all", readout_size=34)
    assert NetworkSpec.from_dict(budget.to_dict()).resolved() == NetworkSpec("scornn", input_size=34, hidden_size=76)


def test_a_network_describes_itself():
    layer = ms.nn.ORNN(3, 8, reflections=4, dtype=torch.float64)
    spec = NetworkSpec.of(layer)
    assert spec.sizes == {"input_size": 3, "hidden_size": 8, "num_layers": 1}
    assert repr(spec.build()) == repr(layer)
    assert spec.build().weight_ih_l0.dtype == torch.float64
    assert NetworkSpec.of(torch.nn.GRU(2, 3)).trained


def test_what_only_python_knows_is_said_when_it_is_read_back():
    record = NetworkSpec(nn.GRU(2, 3)).to_dict()
    assert record["given"] == "GRU(2, 3)"
    with pytest.raises(UserError, match="cannot be built again from the record: GRU"):
        NetworkSpec.from_dict(record)
    with pytest.raises(UserError, match="the option gain cannot be recorded: a file holds no complex"):
        NetworkSpec("rnn", gain=1j).to_dict()
    with pytest.raises(UserError, match="the version of a recorded network must be 1, got 9"):
        NetworkSpec.from_dict({"version": 9, "what": "rnn"})


def test_a_file_that_changed_since_it_was_recorded_is_reported(tmp_path):
    file = tmp_path / "cells.py"
    file.write_text("from torch import nn\nclass My(nn.GRUCell):\n    pass\n")
    spec = NetworkSpec(f"{file}:My", hidden_size=3)
    back = NetworkSpec.from_dict(spec.to_dict())
    assert same(weights(back.build()), weights(spec.build()))
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(UserError, match=r"cells.py changed since it was recorded"):
        back.replace(seed=2).build()
    spec.build()  # which was never recorded
    file.unlink()
    with pytest.raises(UserError, match=r"cells.py is gone since it was recorded"):
        back.build()


@pytest.mark.parametrize(
    ("name", "given", "inputs", "hidden"),
    [
        ("matrixrnn", 16, (1, 3), (4, 4)),
        ("matrixlstm", 32, (1, 3), (4, 8)),
        ("matntm", 64, (1, 3), (8, 8)),
        ("matrix-queue", 8, (3,), (2, 4)),
    ],
)
def test_one_number_is_a_matrix_of_so_many_numbers(name, given, inputs, hidden):
    made = NetworkSpec(name, input_size=3, hidden_size=given).build()
    assert (made.input_shape, made.hidden_size) == (inputs, hidden)


def test_numbers_that_make_no_matrix_say_what_to_give():
    with pytest.raises(UserError, match=r"hidden_size of matrixrnn must be .* such as --hidden 4,4 .*, got 17"):
        NetworkSpec("matrixrnn", hidden_size=17).build()
    budget = NetworkSpec("matrixrnn", input_size=(5, 5), parameters=2000).resolved()
    assert budget.hidden_size == (24, 24)
