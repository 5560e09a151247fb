"""Reference parity: cells written out with one gate changed, weights that match in part, mapping files."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import reference_parity
from mnemoscope.measures.parity.gates import gates_of


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
    [
        ("W_f", "f"),
        ("cell.Uz", "z"),
        ("cell.x2f.weight", "f"),
        ("forget_gate.bias", "forget"),
        ("b_i", "i"),
        ("W_r", "r"),
        ("W_ir", "r"),
        ("b_hr", "r"),
        ("hn.weight", "n"),
        ("U_u", "u"),
        ("u.weight", "u"),
        ("i.bias", "i"),
        ("R_z", "z"),
        ("gate.weight", "gate"),
        ("wx_r.weight", "r"),
        ("Whz", "z"),
    ],
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
    assert reference_parity(ms.nn.LSTM(2, 4), Cell(), mapping=mapping).agree
    assert reference_parity(torch.nn.LSTM(2, 4), ms.adapt(Cell()), mapping=mapping).agree, "names are those of the file"
    for wrong, said in (
        ("bias_ih_l0[0:99]", "rows of bias_ih_l0, which has 16"),
        ("bias_ih_l0[0:4] + bias_hh_l0", "a sum of tensors of one shape"),
        ("weight_hh_l0[0:4]", r"of shape \(4,\), got \(4, 4\)"),
    ):
        with pytest.raises(UserError, match=said):
            reference_parity(ms.nn.LSTM(2, 4), Cell(), mapping=mapping | {"b_i": wrong})


def test_what_cannot_be_matched_is_listed_on_both_sides():
    with pytest.raises(
        UserError, match=r"left over in the first .*weight_ih_l0 \(12, 2\).*in the second .*W_i \(4, 2\)"
    ):
        reference_parity(ms.nn.GRU(2, 4), Cell())
    with pytest.raises(UserError, match="one input_shape"):
        reference_parity(ms.nn.RNN(2, 4), ms.nn.RNN(3, 4))


# A difference in one gate, as strangers write their cells ----------------------------------------------


class Gated(nn.Module):
    """A GRU cell with one matrix for each gate, and options for what implementations disagree about."""

    def __init__(self, before=False, swap=False, bias=0.0, flip=False, candidate=torch.tanh, late=False, turn=False):
        super().__init__()
        self.input_size, self.hidden_size = 2, (hidden := 8)
        self.before, self.swap, self.bias, self.flip = before, swap, bias, flip
        self.candidate, self.late, self.turn = candidate, late, turn
        for gate in "rzn":
            setattr(self, f"W_{gate}", nn.Parameter(0.7 * torch.randn(hidden, 2)))
            setattr(self, f"U_{gate}", nn.Parameter(0.7 * torch.randn(hidden, hidden)))
            setattr(self, f"b_{gate}", nn.Parameter(0.7 * torch.randn(hidden)))

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.hidden_size) if h is None else h
        r, z = (x @ getattr(self, f"W_{k}").T + h @ getattr(self, f"U_{k}").T + getattr(self, f"b_{k}") for k in "rz")
        r, z = torch.sigmoid(r), torch.sigmoid(z + self.bias)
        r, z = (z, r) if self.swap else (r, z)
        U_n = self.U_n if self.turn else self.U_n.T
        seen = (r * h) @ U_n if self.before else r * (h @ U_n)
        n = self.candidate(x @ self.W_n.T + seen + self.b_n)
        new = z * n + (1 - z) * h if self.flip else (1 - z) * n + z * h
        return (h if self.late else new), new


class Packed(nn.Module):
    """An LSTM cell with its gates in one matrix."""

    def __init__(self, hidden=4, forget=0.0, swap=False, late=False, cell=torch.tanh, out=torch.sigmoid):
        super().__init__()
        self.input_size, self.hidden_size = 2, hidden
        self.forget, self.swap, self.late, self.cell, self.out = forget, swap, late, cell, out
        self.weight_ih = nn.Parameter(0.6 * torch.randn(4 * hidden, 2))
        self.weight_hh = nn.Parameter(0.6 * torch.randn(4 * hidden, hidden))
        self.bias = nn.Parameter(0.6 * torch.randn(4 * hidden))

    def forward(self, x, state=None):
        zero = x.new_zeros(len(x), self.hidden_size)
        h, c = (zero, zero) if state is None else state
        i, f, g, o = (x @ self.weight_ih.T + h @ self.weight_hh.T + self.bias).chunk(4, -1)
        i, f = (f, i) if self.swap else (i, f)
        new = torch.sigmoid(f + self.forget) * c + torch.sigmoid(i) * self.cell(g)
        h = self.out(o) * torch.tanh(c if self.late else new)
        return h, (h, new)


class Joined(nn.Module):
    """An LSTM cell of one linear map for each gate, of inputs and state side by side."""

    def __init__(self, hidden=4, coupled=False):
        super().__init__()
        self.input_size, self.hidden_size, self.coupled = 2, hidden, coupled
        self.f, self.i, self.g, self.o = (nn.Linear(2 + hidden, hidden) for _ in range(4))

    def forward(self, x, state=None):
        zero = x.new_zeros(len(x), self.hidden_size)
        h, c = (zero, zero) if state is None else state
        both = torch.cat([x, h], -1)
        f = torch.sigmoid(self.f(both))
        i = 1 - f if self.coupled else torch.sigmoid(self.i(both))
        c = f * c + i * torch.tanh(self.g(both))
        h = torch.sigmoid(self.o(both)) * torch.tanh(c)
        return h, (h, c)


PACKED = {name: f"gate {k} of 4 ({name}, in torch's order)" for k, name in enumerate("ifgo", 1)}


@pytest.mark.parametrize(
    ("cell", "changed", "gates", "together"),
    [
        (Gated, {"before": True}, ("r",), False),  # Cho's reset gate against that of cuDNN
        (Gated, {"swap": True}, ("r", "z"), True),
        (Gated, {"bias": 1.0}, ("z",), False),
        (Gated, {"flip": True}, ("z",), False),
        (Gated, {"candidate": torch.relu}, ("n",), False),
        (Gated, {"turn": True}, ("n",), False),  # which takes r with it: U_n alone tells them apart
        (Gated, {"late": True}, (), False),  # the old state for the new one is no matter of gates
        (Packed, {"forget": 1.0}, (PACKED["f"],), False),
        (Packed, {"swap": True}, (PACKED["i"], PACKED["f"]), True),
        (Packed, {"cell": torch.sigmoid}, (PACKED["g"],), False),
        (Packed, {"out": nn.functional.hardsigmoid}, (PACKED["o"],), False),
        (Packed, {"late": True}, (), False),
        (Joined, {"coupled": True}, ("f", "i"), True),
    ],
)
def test_the_one_gate_that_differs(cell, changed, gates, together):
    torch.manual_seed(0)
    found = reference_parity(cell(), cell(**changed))
    assert not found.agree
    assert (found.gates, found.together) == (gates, together), found.remaining
    assert all(gate in str(found) for gate in gates)


def test_weights_are_as_they_were_when_the_gate_is_found():
    torch.manual_seed(0)
    one, other = Gated(), Gated(before=True)
    before = [{k: v.clone() for k, v in each.state_dict().items()} for each in (one, other)]
    reference_parity(one, other)
    assert all(
        torch.equal(v, each.state_dict()[k])
        for each, kept in zip((one, other), before, strict=True)
        for k, v in kept.items()
    )
