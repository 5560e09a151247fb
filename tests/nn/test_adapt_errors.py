"""Modules that cannot be adapted: one line with what was expected, what came, and the call that would work."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError

D, N = 3, 5
DOCS = Path(__file__).parents[2] / "docs" / "adapt.md"


def cell(answer, **attributes):
    """Build a cell whose forward gives ``answer(self, x, new state)``."""

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.carry = nn.Linear(D, N), nn.Linear(N, N)
            for name, value in attributes.items():
                setattr(self, name, value)

        def forward(self, x, h=None):
            h = x.new_zeros(len(x), N) if h is None else h
            return answer(self, x, torch.tanh(self.read(x) + self.carry(h)))

    return Cell()


def block(answer):
    """Build a block whose forward gives ``answer(what a linear map gives)``."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(D, N)

        def forward(self, x):
            return answer(self.linear(x))

    return Block()


def fail(*_):
    raise RuntimeError("out of\nluck")


def refuse(message, module, *arguments, **options):
    with pytest.raises(UserError) as caught:
        ms.adapt(module, *arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(message, text), text


class NeedsMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(D, N)

    def forward(self, x, mask):
        return self.linear(x) * mask


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(9, D), nn.GRU(D, N)

    def forward(self, tokens, hx=None):
        return self.rnn(self.embedding(tokens), hx)


class Forgetful(nn.Module):
    """Returns another state than the one that it needs to go on."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(D, N, batch_first=True)

    def forward(self, x, hx=None):
        output, hx = self.rnn(x, hx)
        return output, 0.5 * hx


def test_forward_raises():
    where = r"\(test_adapt_errors.py, line \d+\)"
    message = (
        rf"^Cell must take an input of shape \(11, 3\), got RuntimeError: out of luck {where}; call ms.adapt\(module,"
    )
    refuse(message, cell(fail))
    refuse(message + ' kind="cell", input_size=...', cell(fail), "cell")
    refuse(r"^Block must take an input of shape \(11, 7, 3\), got RuntimeError: out of luck", block(fail))


@pytest.mark.parametrize(
    ("value", "shown"), [("text", "str 'text'"), (None, "None"), (3.5, "float 3.5"), ([], r"\[\]")]
)
def test_no_tensor_comes_back(value, shown):
    refuse(
        rf"^Cell must return a state that it takes back, got {shown}; call ms.adapt\(", cell(lambda *_: value), "cell"
    )
    refuse(rf"one output per step, a tensor of shape \(11, 7, features\), got {shown}$", block(lambda y: value))
    refuse(
        f"^cannot tell how Cell is called; as recurrent: .*{shown}; as a cell: .*{shown}; call", cell(lambda *_: value)
    )


def test_outputs_that_change_their_width_are_told_in_one_line():
    """The first step, which starts by itself, gave another width than the others."""
    refuse("^Cell must return outputs of one shape at every step, got", cell(lambda s, x, h: h[:, :4]))


def test_batch_and_time_must_stay():
    refuse(
        r"^Cell must keep the batch, here of 11, got a tensor of shape \(10, 5\)", cell(lambda s, x, h: h[1:]), "cell"
    )
    refuse(r"tensor of shape \(11, 7, features\), got a tensor of shape \(10, 7, 5\)", block(lambda y: y[1:]))
    refuse(r"got a tensor of shape \(11, 6, 5\)", block(lambda y: y[:, 1:]))
    refuse(r"got a tensor of shape \(11, 5, 1\)", block(lambda y: y.mean(1).unsqueeze(-1)))
    refuse("^Block must treat the examples of a batch one by one", block(lambda y: y - y.mean((0, 1))))


def test_one_answer_is_asked_at_every_prefix():
    network = ms.adapt(block(lambda y: y.mean(1)))
    x = torch.randn(6, 2, D)
    means = network.module.linear(x).cumsum(0) / torch.arange(1, 7)[:, None, None]
    torch.testing.assert_close(network(x), means)


def test_numbers_must_be_finite_and_the_same_again():
    nan = "must return finite numbers for a standard normal input, got NaN or infinity; are its parameters initialised"
    refuse(f"^Cell {nan}", cell(lambda s, x, h: h * float("nan")))
    refuse(f"^Block {nan}", block(lambda y: y / 0))
    random = "must give one output for one input in eval mode, got two that differ; take out its random numbers"
    refuse(f"^Cell {random}", cell(lambda s, x, h: h + torch.randn_like(h)), "cell")
    refuse(f"^Block {random}", block(lambda y: y + torch.randn_like(y)))


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTM])
def test_the_meta_device_has_no_values(kind):
    module = kind(D, N, device="meta")
    refuse(rf"^every parameter of {kind.__name__} must be a tensor with values, got 'weight_ih.*' on the meta", module)
    module.to_empty(device="cpu").load_state_dict(kind(D, N).state_dict())
    assert ms.adapt(module).input_size == D


def test_input_width_unknown():
    refuse(
        r'^cannot tell the input width of Identity; call ms.adapt\(module, kind="sequence", input_size=...\)$',
        nn.Identity(),
    )
    assert ms.adapt(nn.Identity(), kind="sequence", input_size=4).output_size == 4
    refuse("^cannot tell the input width of Block: 3 and 5 work; call for instance ms.adapt", Doubling())
    refuse(r"got 5 expected 3; call ms.adapt\(module, input_size=3\)$", nn.GRUCell(D, N), input_size=5)


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(D, N)

    def forward(self, x):
        return 2 * x


Doubling.__name__ = "Block"


def test_tokens():
    refuse(r"must be real vectors, got a module that reads whole numbers; .*as in ms.adapt\(module.rnn\)$", Tokens())
    assert ms.adapt(Tokens().rnn).input_size == D
    refuse("reads whole numbers", nn.Embedding(4, 3))


def test_state_is_not_found():
    call = r"call ms.adapt\(module, kind=\"cell\", init_state=lambda batch: ...\)$"
    refuse(f"^cannot tell the state that Cell starts from: .*; {call}", ElsewhereStart())
    small = ElsewhereStart()
    nn.init.normal_(small.carry.weight, std=1e-4)
    refuse("^cannot tell the state that Cell starts from", small)
    advice = ms.adapt(ElsewhereStart(), init_state=lambda batch: torch.full((batch, N), 0.7))
    x = torch.randn(1, 2, D)
    torch.testing.assert_close(advice(x)[0][0], advice.module(x[0]))
    refuse("as a cell: Cell must return a state that it takes back, got .*int 1", PythonCounter())
    chunks = "^Forgetful must go on from the state that it returns, got other outputs in chunks than at once"
    refuse(chunks, Forgetful(), "recurrent")
    refuse("must keep its size, got .* after", Growing(), "recurrent")


class ElsewhereStart(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.carry = nn.Linear(D, N), nn.Linear(N, N)

    def forward(self, x, h=None):
        return torch.tanh(self.read(x) + self.carry(torch.full((len(x), N), 0.7) if h is None else h))


ElsewhereStart.__name__ = "Cell"


class PythonCounter(ElsewhereStart):
    def forward(self, x, state=None):
        count, h = state or (0, torch.zeros(len(x), N))
        return h, (count + 1, torch.tanh(self.read(x) + self.carry(h)))


PythonCounter.__name__ = "Cell"


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(D, D)

    def forward(self, x, cache=None):
        seen = self.linear(x) if cache is None else torch.cat([cache, self.linear(x)], dim=1)
        return seen.cumsum(1)[:, -x.shape[1] :], seen


def test_state_must_be_left_alone_and_matter():
    overwriting = ms.adapt(Overwriting())
    x, state = torch.randn(2, D), overwriting.init_state(2)
    kept = state.clone()
    assert torch.equal(overwriting.step(x, state)[1][0], overwriting.module.linear(x))
    assert torch.equal(state, kept)
    refuse("^Deaf must depend on its state, got the same for two states; call ms.adapt", Deaf(), "cell")
    refuse(
        r"^cannot tell whether gate of Gated.forward is a state; call ms.adapt\(module, kind=\"cell\"\) or "
        r"ms.adapt\(module, kind=\"sequence\"\)$",
        Gated(),
    )
    assert ms.adapt(Gated(), "sequence").kind == "sequence"
    assert ms.adapt(Gated(), "cell").init_state(2).eq(1).all()


class Overwriting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(D, N)

    def forward(self, x, h=None):
        h = torch.zeros(len(x), N) if h is None else h
        return h.mul_(0.5).add_(self.linear(x))


class Deaf(Overwriting):
    def forward(self, x, h=None):
        return self.linear(x)


class Gated(Overwriting):
    def forward(self, x, gate=None):
        return self.linear(x) * (1 if gate is None else gate)


def test_growing_caches_work_as_sequences():
    network = ms.adapt(Growing())
    assert (network.kind, network.causal) == ("sequence", True)
    assert "its state is left alone, since the state of Growing must keep its size" in network.guesses[-1]


@pytest.mark.parametrize(
    ("init_state", "message"),
    [
        (
            lambda batch: torch.zeros(N),
            r"^every tensor of the state must have one axis for the batch, here of 11, got \(5,\)$",
        ),
        (lambda batch: "zeros", "^the initial state must be tensors for 11 examples, got str 'zeros'$"),
        (
            lambda batch: 1 / 0,
            "^init_state must be a function of the batch size, got ZeroDivisionError: division by zero$",
        ),
        (lambda batch: torch.zeros(batch, N + 1), "^Cell must take an input of shape .*, got RuntimeError: mat1"),
        (torch.zeros(N), r"^init_state must be a function of the batch size, got a Tensor; call ms.adapt\("),
    ],
)
def test_wrong_init_state(init_state, message):
    refuse(message, cell(lambda s, x, h: h), "cell", init_state=init_state)


def test_arguments_that_nobody_can_guess():
    refuse(
        r"^NeedsMask.forward must need no more than input and state, got 'mask' too; call ms.adapt\(module, "
        r"kind=\"sequence\", keywords=\{\"mask\": ...\}\)$",
        NeedsMask(),
    )
    assert ms.adapt(NeedsMask(), keywords={"mask": 0.5}).output_size == N
    refuse(
        r"^module must be an instance, got the class GRUCell; call ms.adapt\(GRUCell\(input_size, hidden_size\)\)$",
        nn.GRUCell,
    )
    refuse("^module must be a torch.nn.Module, got a function$", fail)
    refuse("^module must be a torch.nn.Module, got a str$", "gru")
    refuse("^every parameter of LazyLinear must be initialised, got 'weight' without a size", nn.LazyLinear(3))


def test_wrong_kind():
    refuse(r"it works with another kind, call ms.adapt\(module, kind=\"cell\"\)$", nn.GRUCell(D, N), "sequence")
    refuse(r"it works with another kind, call ms.adapt\(module, kind=\"cell\"\)$", nn.GRUCell(D, N), "recurrent")
    refuse(r"it works with another kind, call ms.adapt\(module, kind=\"recurrent\"\)$", nn.GRU(D, N), "cell")
    refuse(r"^Linear.forward takes no state; it works with another kind, call .*\"sequence\"", nn.Linear(D, N), "cell")
    refuse("^kind must be 'cell' or 'recurrent' or 'sequence', got 'cel'; did you mean 'cell'", nn.GRUCell(D, N), "cel")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_size": 0}, "input_size must be a positive integer, got 0"),
        ({"input_size": "3"}, "input_size must be a positive integer, got '3'"),
        ({"batch_first": 1}, "batch_first must be True, False or None, got 1"),
        ({"layout": "no"}, "layout must be the letters b, t and h in the order of the axes, such as bht, got 'no'"),
        ({"length": 2}, "length must be at least 3, got 2"),
        ({"keywords": 3}, "keywords must be names and values, got 3"),
        ({"state_name": 3}, "state_name must be the name of an argument, or several, got 3"),
        ({"state_name": "nonsense"}, "^state_name must be an argument of LSTMCell.forward: input, hx, got 'nonsense'$"),
        (
            {"output": "nonsense"},
            r"output must name a tensor of shape \(.*\) among what LSTMCell returns, got 'nonsense' of a tuple",
        ),
        ({"state": 7}, "state must name a part of what LSTMCell returns, got 7 of a tuple"),
    ],
)
def test_wrong_options(options, message):
    refuse(message, nn.LSTMCell(D, N), **options)


def test_the_examples_of_the_documentation(capsys):
    page = DOCS.read_text()
    pairs = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    names = {}
    for code, printed in pairs:
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert len(pairs) == 4


def test_the_documentation_names_every_option():
    options = DOCS.read_text().partition("## My module looks like this")[0]
    table = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in options.splitlines() if line.startswith("| `")))
    )
    code = ms.adapt.__kwdefaults__
    assert table == {"kind", *code}


def test_a_module_without_memory_is_refused_and_an_adapted_one_is_filled():
    with pytest.raises(ValueError, match=r"got 'weight_ih_l0' on the meta device; call module\.to_empty"):
        ms.adapt(torch.nn.GRU(3, 4, device="meta"))
    full, empty = ms.adapt(torch.nn.GRU(3, 4)), ms.adapt(torch.nn.GRU(3, 4)).to("meta")
    empty.load_state_dict(full.state_dict(), assign=True)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(empty(x), full(x), rtol=0, atol=0)


def test_a_place_in_a_return_that_has_no_parts():
    with pytest.raises(UserError, match=r"output must name a tensor .* got 9 of a tensor"):
        ms.adapt(cell(lambda self, x, h: h), kind="cell", output=9)


def test_a_state_that_a_step_keeps_on_the_module():
    class Echo(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("read", torch.ones(N, D))
            self.register_buffer("h", torch.zeros(1, N))

        def forward(self, x):
            self.h = 0.5 * self.h.mean(0) + x @ self.read.T
            return self.h

    with pytest.raises(UserError, match="Echo keeps its state on itself between calls, as h: let forward take"):
        ms.adapt(Echo())
