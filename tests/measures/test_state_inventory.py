"""State inventory: sizes counted by hand, units that are read by nobody, tensors that a stranger's forward writes."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import state_inventory


def test_three_units_that_nobody_reads():
    """The cell state of a unit whose output weight, recurrent weights and readout are cut off is read by nothing."""

    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(1, 64)

        def forward(self, x, state):
            h, c = self.cell(x, state)
            h = torch.cat([h[:, :61], torch.zeros_like(h[:, 61:])], 1)
            return h, (h, c)

    torch.manual_seed(0)
    found = state_inventory(ms.adapt(Cut(), kind="cell"))
    assert found.numbers.tolist() == [64, 64]
    assert found.used.tolist() == [61 + 3, 61], "h of the three is zero, but would be read; c of the three is not"
    assert found.still.tolist() == [3, 0]
    assert found.droppable.tolist() == [61, 62, 63, 125, 126, 127]
    assert "state = 2 x 64 real numbers (4,096 bits)" in str(found)
    assert "6 can be dropped (3 never read, 3 never change)" in str(found)


def delay_line(n):
    """Inputs are shifted from unit to unit, and only the last is put out."""
    return ms.nn.LinearSystem.of(np.diag(np.ones(n - 1), -1), np.eye(n)[:, :1], np.eye(n)[-1:], np.zeros(n))


def test_a_delay_line_is_read_one_unit_at_a_time():
    found = state_inventory(delay_line(40))
    assert found.read.tolist() == [1], "y_{t+1} is the last unit but one, shifted"
    assert found.used.tolist() == [39], "the last unit was put out already, and is shifted to nowhere"
    assert found.droppable.tolist() == [39]
    assert state_inventory(delay_line(40), horizon=10).used.tolist() == [10], "one more unit for every step"


@pytest.mark.parametrize(
    ("name", "numbers", "bits"),
    [
        ("rnn", {"h": 6}, 6 * 32),
        ("lstm", {"h": 6, "c": 6}, 12 * 32),
        ("lru", {"h": 12}, 12 * 32),
        ("mlstm", {"memory": 6, "normaliser": 6, "scale": 6}, 18 * 32),
    ],
)
def test_sizes_of_known_states(name, numbers, bits):
    options = {"heads": 6} if name == "mlstm" else {}
    found = state_inventory(ms.nn.create(name, input_size=2, hidden_size=6, **options))
    assert dict(zip(found.names, found.numbers.tolist(), strict=True)) == numbers
    assert int(found.bits.sum()) == bits
    assert not found.growth.any()


def test_a_memory_that_grows():
    found = state_inventory(ms.nn.create("transformer", input_size=2, hidden_size=4))
    assert dict(zip(found.names, found.growth.tolist(), strict=True)) == {"keys": 1, "values": 1, "length": 0}
    assert "keys grows as T^1" in str(found)
    assert len(found.droppable) == 0


def test_units_that_copy_others():
    layer = ms.nn.LinearRNN(1, 3, bias=False)
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.diag(torch.tensor([0.5, 0.5, 0.2])))
        layer.weight_ih_l0.copy_(torch.tensor([[1.0], [-3.0], [1.0]]))
    found = state_inventory(layer)
    assert found.copies.tolist() == [1]
    assert found.droppable.tolist() == [1]


class Keeps(nn.Module):
    """A module that keeps its state in a buffer, in an attribute, and counts its calls."""

    def __init__(self, cell=False):
        super().__init__()
        self.input_size = 2
        self.cell = nn.GRUCell(2, 4)
        self.register_buffer("memory", torch.zeros(1, 4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.last = None
        self.table = torch.linspace(0, 1, 5)

    def forward(self, x):
        h = self.memory if len(self.memory) == len(x) else self.memory[:1].expand(len(x), -1)
        outputs = []
        for each in x.unbind(1):
            h = self.cell(each, h)
            outputs.append(h)
        self.memory, self.last = torch.cat([h[:, :3], h[:, 3:].detach()], 1), x
        self.calls = self.calls + 1
        return torch.stack(outputs, 1) + 0 * self.table.sum()


def test_what_forward_writes_is_found():
    found = state_inventory(Keeps())
    rows = {name: i for i, name in enumerate(found.names)}
    assert set(rows) == {"memory", "calls", "last"}, "a table that stays as it is carries nothing"
    assert found.outside.all()
    assert found.shapes[rows["memory"]] == (4,)
    assert found.read[rows["memory"]] == 4
    assert found.read[rows["last"]] == 0, "it is written and never read"
    assert found.growth[rows["last"]] == 1, "it is as long as the sequence"
    assert found.numbers[rows["calls"]] == 0
    assert found.bits[rows["calls"]] == 64
    assert "written by forward outside the state" in str(found)


class KeepsTimeFirst(Keeps):
    """The same for inputs (time, batch, 2), which nothing says."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


def test_the_order_of_axes_is_found_where_nothing_says_it():
    found = state_inventory(KeepsTimeFirst())
    row = found.names.index("memory")
    assert (found.shapes[row], found.growth[row], found.read[row]) == ((4,), 0, 4)


class Caches(nn.Module):
    """Attention to a cache of keys and values that it returns and takes back, longer at every step."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Linear(2, 12)

    def forward(self, x, cache=None):
        q, *new = self.maps(x).chunk(3, -1)
        k, v = new if cache is None else (torch.cat([old, each]) for old, each in zip(cache, new, strict=True))
        hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(len(k) - len(q) + 1)
        weights = torch.einsum("tbd,sbd->bts", q, k).masked_fill(hidden, -torch.inf).softmax(-1)
        return torch.einsum("bts,sbd->tbd", weights, v), (k, v)


def test_a_state_that_a_stranger_lets_grow_is_listed():
    found = state_inventory(Caches())
    assert found.names == ("returned[1][0]", "returned[1][1]")
    assert found.growth.tolist() == [1, 1]
    assert found.shapes == ((8, 4), (8, 4))
    assert not found.outside.any()
    assert "must keep its size" in str(found)


def test_a_state_that_is_a_dict_has_the_names_of_its_keys():
    class Keyed(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.RNNCell(1, 3)

        def forward(self, x, state):
            h = self.cell(x, state["h"])
            return h, {"h": h, "trace": 0.5 * state["trace"] + h}

    def start(batch):
        return {"h": torch.zeros(batch, 3), "trace": torch.zeros(batch, 3)}

    assert state_inventory(ms.adapt(Keyed(), init_state=start)).names == ("h", "trace")


def test_a_block_without_a_state_carries_nothing():
    block = ms.adapt(nn.Linear(2, 3), kind="sequence")
    assert str(state_inventory(block)) == "it carries nothing from step to step"


def test_a_module_is_left_as_it_was():
    module = Keeps()
    state_inventory(module)
    assert module.calls == 0
    assert module.training


def test_one_line_for_what_cannot_be_read():
    class Broken(nn.Module):
        def forward(self, x):
            raise RuntimeError("no")

    with pytest.raises(UserError, match="Broken"):
        state_inventory(Broken())
    with pytest.raises(UserError, match="horizon must be a positive integer, got 0"):
        state_inventory(ms.nn.RNN(1, 2), horizon=0)


class Starts(nn.Module):
    """A module that starts from a state of its own, and writes three numbers that are no batch of three."""

    def __init__(self):
        super().__init__()
        self.input_size, self.hidden_size, self.cell = 2, 4, nn.GRUCell(2, 4)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x, h=None):
        h = torch.linspace(0, 0.5, 4).expand(x.shape[1], 4) if h is None else h
        outputs = []
        for each in x:
            h = self.cell(each, h)
            outputs.append(h)
        self.seen = x.mean() * torch.ones(3)
        return torch.stack(outputs), h


def test_a_state_that_was_not_read_is_told():
    found = state_inventory(Starts())
    assert "its own state was not read: cannot tell the state that Starts starts from" in str(found)
    assert found.shapes == ((3,),), "the batch is the axis that grows with it"
    told = state_inventory(ms.adapt(Starts(), init_state=lambda batch: torch.linspace(0, 0.5, 4).expand(batch, 4)))
    assert told.unread == ""
    assert told.numbers.tolist() == [4, 3]
