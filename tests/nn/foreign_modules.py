"""Modules as other people write them: cells, and recurrent modules over whole sequences."""

from collections import OrderedDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import nn

import mnemoscope as ms

D, N = 3, 5


class KeywordState(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.carry = nn.Linear(D, N), nn.Linear(N, N)

    def forward(self, x, *, state=None):
        state = x.new_zeros(len(x), N) if state is None else state
        return torch.tanh(self.read(x) + self.carry(state))


class OutputAndState(nn.Module):
    """One joint matrix, a state that must be given, and an output of another width."""

    def __init__(self):
        super().__init__()
        self.joint, self.out = nn.Linear(D + N, N), nn.Linear(N, 2)

    def forward(self, x, h):
        h = torch.tanh(self.joint(torch.cat([x, h], dim=-1)))
        return self.out(h), h


class SpreadState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(D, N)

    def forward(self, x, h, c):
        return self.cell(x, (h, c))


class Pair(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class NamedState(SpreadState):
    def forward(self, x, state: Pair):
        return state.h, Pair(*self.cell(x, tuple(state)))


class MatrixState(nn.Module):
    def __init__(self):
        super().__init__()
        self.write, self.turn = nn.Linear(D, 4), nn.Parameter(torch.randn(2, 2) / 2)

    def forward(self, x, state=None):
        state = x.new_zeros(len(x), 2, 2) if state is None else state
        return torch.tanh(state @ self.turn + self.write(x).view(-1, 2, 2))


class LearnedStart(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.h0 = nn.GRUCell(D, N), nn.Parameter(torch.randn(N))

    def forward(self, x, hidden=None):
        return self.cell(x, self.h0.expand(len(x), -1) if hidden is None else hidden)


class OwnStart(KeywordState):
    """Starts somewhere that no parameter holds; a method tells where."""

    def init_hidden(self, batch_size):
        return torch.full((batch_size, N), 0.3)

    def forward(self, x, state):
        return super().forward(x, state=state)


class TwoLayers(nn.Module):
    """Its state is a list."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.GRUCell(D, N), nn.GRUCell(N, 2)

    def forward(self, x, states=None):
        states = states or [None, None]
        h = self.first(x, states[0])
        return h, [h, self.second(h, states[1])]


class Counting(nn.Module):
    """A complex state, and an integer that counts."""

    def __init__(self):
        super().__init__()
        self.read, self.turn = nn.Linear(D, 2 * N), nn.Parameter(torch.randn(N, N, dtype=torch.complex64) / 4)

    def forward(self, x, state=None):
        if state is None:
            state = (torch.zeros(len(x), N, dtype=x.dtype.to_complex()), torch.zeros(len(x), dtype=torch.int64))
        h, count = state
        h = h @ self.turn + torch.view_as_complex(self.read(x).unflatten(-1, (N, 2)))
        return h, (h, count + 1)


class Tutorial(nn.Module):
    """As torch's own tutorial has it: one joint matrix, a start for one example."""

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(input_size + hidden_size, output_size)

    def forward(self, input, hidden):
        joint = torch.cat((input, hidden), 1)
        return self.i2o(joint).log_softmax(dim=1), torch.tanh(self.i2h(joint))

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


class Memory(nn.Module):
    """A controller with a memory matrix; the state is a dict."""

    def __init__(self):
        super().__init__()
        self.controller, self.address = nn.GRUCell(D + 2, N), nn.Linear(N, 4)

    def forward(self, x, state=None):
        state = state or {
            "h": x.new_zeros(len(x), N),
            "memory": x.new_zeros(len(x), 4, 2),
            "read": x.new_zeros(len(x), 2),
        }
        h = self.controller(torch.cat([x, state["read"]], dim=1), state["h"])
        focus = self.address(h).softmax(-1).unsqueeze(-1)
        memory = state["memory"] + focus * h[:, None, :2]
        return h, {"h": h, "memory": memory, "read": (focus * memory).sum(1)}


class AnyArguments(KeywordState):
    def forward(self, *args):
        return super().forward(args[0], state=args[1] if len(args) > 1 else None)


CELLS = {
    "tutorial": (lambda: Tutorial(D, N, 2), {}),
    "memory": (Memory, {"input_size": D}),
    "any arguments": (AnyArguments, {}),
    "RNNCell": (lambda: nn.RNNCell(D, N), {}),
    "LSTMCell": (lambda: nn.LSTMCell(D, N), {}),
    "GRUCell": (lambda: nn.GRUCell(D, N), {}),
    "keyword": (KeywordState, {}),
    "output and state": (OutputAndState, {}),
    "spread": (SpreadState, {}),
    "named": (NamedState, {"init_state": lambda batch: Pair(torch.zeros(batch, N), torch.ones(batch, N))}),
    "matrix": (MatrixState, {}),
    "learned start": (LearnedStart, {}),
    "own start": (OwnStart, {}),
    "list": (TwoLayers, {}),
    "complex": (Counting, {}),
}


class WithExtra(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(D, N, 2)

    def forward(self, x, hx=None):
        output, hx = self.rnn(x, hx)
        return output, hx, output.mean()


class BatchFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(D, N, batch_first=True)

    def forward(self, x, hidden=None):
        return self.rnn(x, hidden)


class BatchFirstState(nn.Module):
    """Batch, then layers, in the state too."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(D, N, 2, batch_first=True)

    def forward(self, x, state=None):
        output, state = self.rnn(x, None if state is None else state.transpose(0, 1).contiguous())
        return output, state.transpose(0, 1)


class ThreeReturns(nn.Module):
    """h and c apart, in and out."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(D, N, batch_first=True)

    def forward(self, x, h=None, c=None):
        output, (h, c) = self.rnn(x, None if h is None else (h, c))
        return output, h, c


class NeedsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_layers, self.rnn = 2, nn.GRU(D, N, 2)

    def forward(self, x, hidden):
        return self.rnn(x, hidden)


class AsDict(BatchFirst):
    def forward(self, x, hidden=None):
        output, hidden = self.rnn(x, hidden)
        return {"attention": None, "hidden": hidden, "output": output}


class HuggingFace(BatchFirst):
    """As the models of transformers: tokens or embeddings in, an object out."""

    def __init__(self, kind):
        super().__init__()
        self.embeddings = nn.Embedding(7, D)
        self.config = SimpleNamespace(hidden_size=D)
        self.kind = kind

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, state=None, use_cache=None):
        x = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        output, state = self.rnn(x, state)
        return self.kind(last_hidden_state=output, state=state, hidden_states=(x, output))


@dataclass
class ModelOutput:
    last_hidden_state: torch.Tensor
    state: torch.Tensor
    hidden_states: tuple[torch.Tensor, ...]


WHOLE = {
    "RNN": lambda: nn.RNN(D, N, nonlinearity="relu"),
    "LSTM": lambda: nn.LSTM(D, N, 2, batch_first=True, proj_size=2),
    "GRU": lambda: nn.GRU(D, N, 2),
    "extra": WithExtra,
    "batch first": BatchFirst,
    "dict": AsDict,
    "batch first state": BatchFirstState,
    "three returns": ThreeReturns,
    "needs state": NeedsState,
    "mapping": lambda: HuggingFace(OrderedDict),
    "dataclass": lambda: HuggingFace(ModelOutput),
    "object": lambda: HuggingFace(SimpleNamespace),
}


def adapted(name):
    if name in WHOLE:
        return ms.adapt(WHOLE[name]())
    make, options = CELLS[name]
    return ms.adapt(make(), **options)
