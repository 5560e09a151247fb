"""Mistakes get one line that says what was expected and what came, and change nothing."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.rnn import PackedSequence

import mnemoscope as ms
from mnemoscope.core.errors import UserError

zeros = torch.zeros


def rnn(**options):
    return ms.nn.RNN(3, 4, **options)


def line_of(call):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "weight", "value", "message"),
    [
        ("lstm", "weight_hh_l0", nn.Parameter(zeros(3, 3)), "weight_hh_l0 must be of shape (16, 4), got (3, 3)"),
        ("rnn", "weight_ih_l0", zeros(4, 4), "weight_ih_l0 must be of shape (4, 3), got (4, 4)"),
        ("rnn", "weight_hh_l0", torch.eye(4) + 0j, "weight_hh_l0 must be real, got torch.complex64"),
        ("rnn", "weight_hh_l0", None, "weight_hh_l0 must be numbers of shape (4, 4), got None"),
        (
            "rnn",
            "weight_hh_l9",
            zeros(4, 4),
            "this network has no weight_hh_l9; it has weight_ih_l0, weight_hh_l0, bias_l0",
        ),
        ("ornn", "weight_hh_l0", zeros(3, 3), "the matrix must be of shape (4, 4), got (3, 3)"),
        ("exprnn", "weight_hh_l0", torch.eye(4) + 0j, "the matrix must be real, got torch.complex64"),
    ],
)
def test_wrong_weights_are_refused_and_nothing_changes(name, weight, value, message):
    layer = ms.nn.create(name, input_size=3, hidden_size=4)
    before = {key: tensor.clone() for key, tensor in layer.state_dict().items()}
    assert line_of(lambda: setattr(layer, weight, value)) == message
    assert all(torch.equal(layer.state_dict()[key], tensor) for key, tensor in before.items())


def test_a_bias_that_is_not_there_cannot_be_set():
    assert "has no bias_l0" in line_of(lambda: setattr(rnn(bias=False), "bias_l0", zeros(4)))


@pytest.mark.parametrize("name", ["rnn", "ornn", "exprnn", "full-urnn"])
@pytest.mark.parametrize("kind", [nn.Parameter, lambda v: v, lambda v: v.numpy(), lambda v: v.tolist()])
def test_weights_take_values_in_any_form(name, kind):
    layer = ms.nn.create(name, input_size=3, hidden_size=4)
    rotation = torch.linalg.matrix_exp(torch.tensor([[0.0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]]))
    layer.weight_hh_l0 = kind(rotation)
    torch.testing.assert_close(layer.weight_hh_l0.detach(), rotation)


@pytest.mark.parametrize(
    ("x", "state", "message"),
    [
        (zeros(5, 2, 3), zeros(1, 2, 4), "x must be a tensor of shape (batch, input_size), got (5, 2, 3)"),
        (zeros(3), zeros(1, 2, 4), "x must be a tensor of shape (batch, input_size), got (3,)"),
        (np.zeros((2, 3)), zeros(1, 2, 4), "x must be a tensor of shape (batch, input_size), got ndarray"),
        (zeros(2, 4), zeros(1, 2, 4), "the last axis of x must be input_size = 3, got 4"),
        (zeros(2, 3), None, "hx must be a tensor of shape (1, 2, 4), got a NoneType"),
        (zeros(1, 3), zeros(1, 2, 4), "hx must be a tensor of shape (1, 1, 4), got a tensor of shape (1, 2, 4)"),
        (zeros(2, 3), zeros(1, 2, 4).double(), "hx must be of type torch.float32, got torch.float64"),
    ],
)
def test_step_checks_what_it_is_given(x, state, message):
    assert line_of(lambda: rnn().step(x, state)) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnn(bias="no"), "bias must be True or False, got 'no'"),
        (lambda: rnn(dropout=True), "dropout must be a probability between 0 and 1, got True"),
        (lambda: rnn(dropout=float("nan")), "dropout must be a probability between 0 and 1, got nan"),
        (lambda: rnn(device="nonsense"), "device must be a device such as 'cpu' or 'cuda:0', got 'nonsense'"),
        (lambda: rnn(dtype=torch.int64), "dtype must be a real floating-point type, got torch.int64"),
        (lambda: rnn(generator=3), "generator must be a torch.Generator or None, got 3"),
        (lambda: rnn(checkpoint_every=0), "checkpoint_every must be a positive integer, got 0"),
        (lambda: ms.nn.RNN(3), "RNN(input_size, hidden_size, ..) needs hidden_size"),
        (lambda: ms.nn.create(None), "a network must be named by a string, got None"),
        (lambda: ms.nn.ORNN(3, 4, reflections=5), "reflections must be an integer from 1 to hidden_size = 4, got 5"),
        (lambda: ms.nn.EURNN(3, 4, rotations=1.5), "rotations must be an integer from 1 to hidden_size = 4, got 1.5"),
        (lambda: ms.nn.SCORNN(3, 4, negative=-1), "negative must be an integer from 0 to 4, got -1"),
        (lambda: ms.nn.SoftOrth(3, 4, margin=2), "margin must be a number between 0 and 1, got 2"),
        (lambda: ms.nn.ExpRNN(3, 4, rebase=0), "rebase must be a positive integer, got 0"),
        (lambda: ms.nn.FullURNN(3, 4, reorthogonalise="x"), "reorthogonalise must be True or False, got 'x'"),
        (lambda: rnn().parameter_groups(-1), "lr must be a finite number that is not negative, got -1"),
        (lambda: rnn().unflatten_state(zeros(2, 3)), "flat state must be of shape (batch, 4), got (2, 3)"),
        (
            lambda: ms.nn.URNN(3, 4, dtype=torch.bfloat16),
            "a complex network must be float32 or float64 (complex64, complex128), got torch.bfloat16",
        ),
    ],
)
def test_options_are_checked(call, message):
    assert line_of(call) == message


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_complex_map_is_refused_in_bfloat16_before_anything_is_cast_away():
    layer = ms.nn.create("scurnn", input_size=3, hidden_size=4).to(torch.bfloat16)
    message = "a complex network must be float32 or float64 (complex64, complex128), got torch.bfloat16"
    assert line_of(lambda: layer(zeros(5, 2, 3).bfloat16())) == message


def packed(order, inverse):
    sizes = torch.tensor([3, 1])
    return tuple.__new__(PackedSequence, (zeros(4, 3), sizes, order, inverse))


@pytest.mark.parametrize(
    ("order", "inverse", "words"),
    [
        (torch.tensor([1, 2, 0]), torch.tensor([1, 2, 0]), "inverse to each other"),
        (torch.tensor([1, 2, 0]), None, "inverse to each other"),
        (torch.tensor([0, 0, 1]), torch.tensor([0, 1, 2]), "a permutation of 3"),
        (torch.tensor([0.0, 1, 2]), torch.tensor([0, 1, 2]), "a permutation of 3"),
    ],
)
def test_packed_sequences_in_a_false_order_are_refused(order, inverse, words):
    assert words in line_of(lambda: rnn()(packed(order, inverse)))


def saved(tmp_path, tensors, **metadata):
    path = tmp_path / "network.safetensors"
    header = {"mnemoscope_format": "1", "network": "rnn", "dtype": "float32"}
    options = json.dumps({"input_size": 3, "hidden_size": 4})
    save_file(tensors, path, metadata=header | {"options": options} | metadata)
    return path


def test_a_file_from_a_stranger_runs_nothing(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\nclass X: pass\n")
    path = saved(tmp_path, rnn().state_dict(), network=f"{trap}:X")
    assert "there is no network named" in line_of(lambda: ms.nn.load(path))
    assert not (tmp_path / "sprung").exists()


def test_files_that_do_not_hold_what_they_say_are_refused(tmp_path):
    double = {key: tensor.double() for key, tensor in rnn().state_dict().items()}
    line = line_of(lambda: ms.nn.load(saved(tmp_path, double)))
    assert "is torch.float64 of shape (4, 3), not torch.float32 of shape (4, 3)" in line
    assert "format 2" in line_of(lambda: ms.nn.load(saved(tmp_path, rnn().state_dict(), mnemoscope_format="2")))
    whole = saved(tmp_path, rnn().state_dict())
    whole.write_bytes(whole.read_bytes()[:-20])
    assert "is not a whole safetensors file" in line_of(lambda: ms.nn.load(whole))
    assert "there is no file" in line_of(lambda: ms.nn.load(tmp_path / "none"))
    assert "cannot be written" in line_of(lambda: ms.nn.save(rnn(), tmp_path / "no" / "folder" / "x"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_size": 3, "hidden_size": 30_000}, "not torch.float32 of shape (30000, 3)"),
        ({"input_size": 3, "hidden_size": 4, "num_layers": 10**7}, "more layers than its 3 tensors are for"),
        ({"input_size": 10**26, "hidden_size": 4}, "does not hold what its header says"),
        ([1], "its options are no mapping"),
    ],
)
def test_a_small_file_costs_little(tmp_path, options, words):
    path = saved(tmp_path, rnn().state_dict(), options=json.dumps(options))
    assert words in line_of(lambda: ms.nn.load(path))


def test_a_pipe_is_no_network(tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    assert "it is not a regular file" in line_of(lambda: ms.nn.load(tmp_path / "pipe.safetensors"))


def test_an_unregistered_subclass_is_not_saved_as_its_base(tmp_path):
    class Mine(ms.nn.RNN):
        pass

    assert "only a registered network can be saved" in line_of(lambda: ms.nn.save(Mine(3, 4), tmp_path / "x"))
