"""What machines do with their memory: against a trace made by hand and a plain loop over steps and slots."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import mnemoscope as ms
from mnemoscope.cli.main import app
from mnemoscope.core.errors import UserError
from mnemoscope.nn.addressing import Trace


def machine(name="ntm", **options):
    sizes = {"ntm": {"input_size": 2, "hidden_size": 5, "memory": (4, 3)}}
    sizes["matntm"] = {"input_size": (2, 2), "hidden_size": (3, 3), "memory": (4, 2, 3)}
    return ms.nn.create(name, generator=torch.Generator().manual_seed(0), **{**sizes[name], **options})


@pytest.mark.parametrize(
    ("name", "options"),
    [("ntm", {}), ("ntm", {"batch_first": True, "read_heads": 2}), ("matntm", {}), ("ntm", {"num_layers": 2})],
)
def test_it_is_what_the_trace_says(name, options):
    layer = machine(name, **options)
    which = 1 if options.get("num_layers") == 2 else 0
    x = torch.randn(9, 1, *layer.input_shape, generator=torch.Generator().manual_seed(3))
    found = ms.measures.memory_use(layer, inputs=x, threshold=0.3, layer=which)
    order = x.transpose(0, 1) if layer.batch_first else x
    with torch.no_grad():
        trace = layer.eval().trace(order, layer=which)
        output = layer(order)[0].reshape(9, -1)
    np.testing.assert_allclose(found.outputs, output, atol=1e-6)
    written = returned = 0
    for i in range(4):
        at = [t for t in range(9) if trace.write[t, 0, :, i].mean() > 0.3]
        later = any(trace.read[t, 0, :, i].mean() > 0.3 for t in range(9) if at and t > at[0])
        written, returned = written + bool(at), returned + (bool(at) and later)
        size = torch.linalg.vector_norm(trace.memory[-1, 0, i] - 1e-5)
        assert found.memory[-1, i] == pytest.approx(float(size), rel=1e-4)
    assert found.written == written
    assert found.returned == pytest.approx(returned / written if written else 0)
    np.testing.assert_allclose(found.contents, trace.memory[-1, 0].flatten(1), atol=1e-6)


def test_slots_that_are_written_and_read_by_hand(monkeypatch):
    """Slots 0 and 1 are written in turn, slot 0 is read later, slot 1 at the step of its writing only."""
    layer = machine()
    write, read = torch.zeros(4, 1, 1, 4), torch.zeros(4, 1, 1, 4)
    write[0, 0, 0, 0] = write[1, 0, 0, 1] = read[1, 0, 0, 1] = read[3, 0, 0, 0] = 1
    given = Trace(read, write, torch.full((4, 1, 4, 3), 1e-5))
    monkeypatch.setattr(type(layer), "trace", lambda self, x, hx=None, *, layer=0: given)
    found = ms.measures.memory_use(layer, horizon=4)
    assert (found.written, found.returned) == (2, 0.5)
    assert found.sharpness == (0.5, 0.5)
    assert not found.memory.any()


def test_long_sequences_are_drawn_in_blocks():
    found = ms.measures.memory_use(machine(), horizon=130)
    names = [figure.name for figure in found.figures()]
    assert names == ["inputs", "outputs", "write", "read", "memory"]
    write = found.figures()[2].drawing
    assert len(write.values[0]) == 65
    np.testing.assert_allclose(write.values[0][0], found.write[:2, 0].max())
    assert json.loads(json.dumps(found.to_dict()))["measure"] == "memory-use"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.measures.memory_use(ms.nn.RNN(2, 3)), "network must be a machine with an external memory"),
        (lambda: ms.measures.memory_use(machine(), threshold=1.0), "threshold must be below 1, got 1.0"),
        (lambda: ms.measures.memory_use(machine(), layer=1), "layer must be an integer from 0 to 0, got 1"),
        (lambda: ms.measures.memory_use(machine(), inputs=np.zeros((3, 2, 2))), "inputs must be one sequence"),
    ],
)
def test_mistakes_are_one_line(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_the_command(tmp_path):
    picture = tmp_path / "use.svg"
    typed = f"measure memory-use ntm --hidden 5 --input-size 2 --set memory=4,3 --horizon 7 --plot {picture}"
    found = CliRunner().invoke(app, typed.split())
    assert found.exit_code == 0, found.output
    assert "of 4 slots written in 7 steps" in found.output
    assert "Write weights" in picture.read_text()
    refused = CliRunner().invoke(app, ["measure", "memory-use", "gru"])
    assert refused.exit_code == 2
    assert "it needs a machine with an external memory" in refused.output
