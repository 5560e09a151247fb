"""Reference parity: cells written out with one gate changed, weights that match in part, mapping files."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import reference_parity
from mnemoscope.measures.parity.weights import gates_of


class Cell(nn.Module):
    """An LSTM cell with one matrix for each gate, and options for mistakes."""

    def __init__(self, input_size=2, hidden_size=4, forget=torch.sigmoid, old=False):
        super().__init__()
        self.input_size, self.hidden_size, self.forget, self.old = input_size, hidden_size, forget, old
        for gate in "ifgo":
            setattr(self, f"W_{gate}", nn.Parameter(torch.randn(hidden_size, input_size)))
            setattr(self, f"U_{gate}", nn.Parameter(torch.randn(hidden_size, hidden_size)))
            setattr(self, f"b_{gate}", nn.Parameter(torch.randn(hidden_size)))

    def forward(self, x, state=None):
        zero = x.new_zeros(len(x), self.hidden_size)
        h, c = (zero, zero) if state is None else state
        i, f, g, o = (
            x @ getattr(self, f"W_{k}").T + h @ getattr(self, f"U_{k}").T + getattr(self, f"b_{k}") for k in "ifgo"
        )
        new = self.forget(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c if self.old else new)
        return h, (h, new)


def test_the_same_function_agrees():
    torch.manual_seed(0)
    found = reference_parity(Cell(), Cell())
    assert found.agree
    assert found.difference < 1e-12
    assert found.remaining == {}


def test_the_gate_that_differs_is_named():
    torch.manual_seed(0)
    found = reference_parity(Cell(), Cell(forget=nn.functional.hardsigmoid))
    assert not found.agree
    assert found.gates == ("f",), found.remaining
    assert found.parts == 2, "the first state is zero: what is forgotten of it does not show"


@pytest.mark.parametrize("hidden", [4, 8])
def test_a_gate_with_another_bias_is_named(hidden):
    torch.manual_seed(0)
    found = reference_parity(Cell(2, hidden), Cell(2, hidden, forget=lambda f: torch.sigmoid(f + 1)))
    assert found.gates == ("f",), found.remaining
    assert set(found.remaining) == {"i", "f", "g", "o"}, "W, U and b of a gate belong together"


@pytest.mark.parametrize(
    ("name", "gate"),
    [("W_f", "f"), ("module.Uz", "z"), ("cell.x2f.weight", "f"), ("forget_gate.bias", "forget"), ("b_i", "i")],
)
def test_names_of_gates(name, gate):
    assert list(gates_of({name: torch.zeros(3, 3)}, 3)) == [gate]


def test_an_old_state_for_a_new_one_is_caught():
    torch.manual_seed(0)
    found = reference_parity(Cell(), Cell(old=True))
    assert found.parts == 1
    assert found.difference > 0.1
    assert found.gates == ()
    assert "in what is done with the gates or with the state" in str(found)


def test_a_mapping_takes_rows_and_sums():
    torch.manual_seed(0)
    mapping = {}
    for k, gate in enumerate("ifgo"):
        rows = f"[{4 * k}:{4 * k + 4}]"
        mapping |= {f"W_{gate}": f"weight_ih_l0{rows}", f"U_{gate}": f"weight_hh_l0{rows}"}
        mapping[f"b_{gate}"] = f"bias_ih_l0{rows} + bias_hh_l0{rows}"
    cell = ms.adapt(Cell())
    prefix = next(iter(dict(cell.named_parameters()))).rpartition("W_")[0]
    mapping = {f"{prefix}{name}": text for name, text in mapping.items()}
    assert reference_parity(ms.nn.LSTM(2, 4), cell, mapping=mapping).agree


def test_what_cannot_be_matched_is_listed_on_both_sides():
    with pytest.raises(
        UserError, match=r"left over in the first .*weight_ih_l0 \(12, 2\).*in the second .*W_i \(4, 2\)"
    ):
        reference_parity(ms.nn.GRU(2, 4), Cell())
    with pytest.raises(UserError, match="one input_shape"):
        reference_parity(ms.nn.RNN(2, 4), ms.nn.RNN(3, 4))
