"""Profiles of blocks without a state: measured on their outputs, beside networks that are measured alike."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.profiles.section import all_sections


class Convolution(nn.Module):
    """A causal convolution over three steps; (batch, time, width)."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv1d(width, width, 3)

    def forward(self, x):
        return torch.tanh(self.mix(nn.functional.pad(x.transpose(1, 2), (2, 0)))).transpose(1, 2)


class Fixed(nn.Module):
    """A block of one length."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(10, 10).tril())

    def forward(self, x):
        return torch.einsum("ts,bsd->btd", self.mix, x)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("references")))
        return ms.profile(Convolution(4), quick=True, full=True)  # whatever time it takes


def test_a_block_has_a_filled_page_beside_references_measured_alike(found):
    row = found.rows[0]
    done = {name for name, each in row.sections.items() if each.done}
    assert {"card", "outputs", "separation"} <= done
    outputs = row.section("outputs").scalars
    assert outputs["half_life"].value in (0.0, 1.0, 2.0)
    assert outputs["older"].value == pytest.approx(0, abs=1e-12)  # it reads three steps
    assert outputs["prefix_gap"].value == pytest.approx(0, abs=1e-6)
    assert found.references
    for other in found.references:
        assert other.section("outputs").done
        assert not other.section("fisher").done
    assert {"long memory of outputs", "outputs under noise"} <= {score.name for score in found.page.scores}
    assert "read as a block without a state, batch first, inputs d = 4, outputs 4" in str(found).replace("\n", " ")


def test_a_network_with_a_state_is_asked_for_outputs_only_beside_a_block():
    (alone,) = (each for each in all_sections() if each.name == "outputs")
    assert alone.kinds == ("sequence",)
    assert alone.among({"recurrent"}).kinds == ("sequence",)
    assert alone.among({"recurrent", "sequence"}).kinds == ("sequence", "recurrent")
    beside = ms.profiles.compare(Convolution(3), ms.nn.RNN(3, 3), quick=True, seeds=1)
    assert all(row.section("outputs").done for row in beside.rows)


def test_a_block_of_one_length_is_measured_at_that_length():
    found = ms.profile(Fixed(), quick=True, full=True, advice={"kind": "sequence", "length": 10}, input_size=None)
    row = found.rows[0]
    assert row.section("card").done
    assert row.section("outputs").done
    assert len(row.section("outputs").data["lags"]) == 10
