"""PackedSequence: sequences of different lengths, each as if it were alone."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from mnemoscope.nn.state import State, index_batch
from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close
from mnemoscope.testing.subject import Network, Subject

__all__ = [
    "check_packed",
    "check_packed_bidirectional",
    "check_packed_full",
    "check_packed_state",
    "check_packed_unsorted",
]

SORTED, UNSORTED = (5, 3, 3, 1), (2, 5, 1, 3)


@check("accept a PackedSequence")
def check_packed(subject: Subject) -> None:
    """A PackedSequence gives a PackedSequence, with the output of every sequence as if it were alone."""
    network = subject.build_deep()
    sequences = _sequences(subject, network, SORTED)
    outputs, _ = _run_packed(subject, network, sequences, None)
    _require_alone(subject, network, sequences, outputs, "let padding touch no output of a PackedSequence")


@check("accept a PackedSequence whose lengths are all equal")
def check_packed_full(subject: Subject) -> None:
    """A PackedSequence of equal lengths gives what the same sequences give as one padded tensor."""
    network = subject.build_deep()
    x = subject.inputs(network)
    y, state = subject.run(network, x)
    outputs, last = _run_packed(subject, network, list(x.unbind(1)), None)
    alike = "make sequences of equal lengths give the same packed as in a tensor"
    require_close((torch.stack(outputs, 1), last), (y, state), alike)


@check("accept a PackedSequence with enforce_sorted=False, and with hx")
def check_packed_unsorted(subject: Subject) -> None:
    """Unsorted lengths (enforce_sorted=False) give outputs and states in the caller's order."""
    network = subject.build_deep()
    _require_order(subject, network, UNSORTED)


@check("accept a PackedSequence together with hx")
def check_packed_state(subject: Subject) -> None:
    """Each packed sequence starts from its own row of hx, and its state is the one at its own end."""
    network = subject.build_deep()
    _require_order(subject, network, SORTED)


@check("accept a PackedSequence when bidirectional=True")
def check_packed_bidirectional(subject: Subject) -> None:
    """The reverse direction of a packed sequence starts at its last input, not in the padding."""
    options = {"num_layers": 2} if subject.has("num_layers") else {}
    network = subject.build(bidirectional=True, **options)
    sequences = _sequences(subject, network, UNSORTED)
    outputs, _ = _run_packed(subject, network, sequences, None)
    alike = "start the reverse direction of every packed sequence at its own last input"
    _require_alone(subject, network, sequences, outputs, alike)
    _require_order(subject, network, UNSORTED)


def _sequences(subject: Subject, network: Network, lengths: tuple[int, ...]) -> list[Tensor]:
    return [subject.inputs(network, time=length, batch=1).squeeze(1) for length in lengths]


def _run_packed(
    subject: Subject, network: Network, sequences: list[Tensor], hx: State | None
) -> tuple[list[Tensor], State]:
    packed = pack_sequence(sequences, enforce_sorted=False)
    y, state = subject.run(network, packed, hx)
    require(isinstance(y, PackedSequence), "return a PackedSequence when a PackedSequence comes in")
    require(torch.equal(y.batch_sizes, packed.batch_sizes), "return a PackedSequence with the batch_sizes of the input")
    return unpack_sequence(y), state


def _require_alone(
    subject: Subject, network: Network, sequences: list[Tensor], outputs: list[Tensor], advice: str
) -> None:
    for sequence, output in zip(sequences, outputs, strict=True):
        require_close(output, subject.run(network, sequence.unsqueeze(1))[0].squeeze(1), advice)


def _require_order(subject: Subject, network: Network, lengths: tuple[int, ...]) -> None:
    axis, sequences = subject.batch_axis(network), _sequences(subject, network, lengths)
    hx = subject.state(network, batch=len(lengths))
    outputs, state = _run_packed(subject, network, sequences, hx)
    for i, sequence in enumerate(sequences):
        one = torch.tensor([i])
        y, last = subject.run(network, sequence.unsqueeze(1), index_batch(hx, one, axis))
        require_close(
            (outputs[i], index_batch(state, one, axis)),
            (y.squeeze(1), last),
            "keep the caller's order of packed sequences in hx, in the output and in the returned state, "
            "and return the state at each sequence's own end",
        )
