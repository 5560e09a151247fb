"""Export to ONNX of every recurrent network, at any length and batch, against onnxruntime."""

import pytest
import torch
from torch.utils._pytree import tree_leaves

import mnemoscope as ms

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]
WHY = "is not installed: pip install mnemoscope[clients]"
onnxruntime = pytest.importorskip("onnxruntime", reason=f"onnxruntime {WHY}")
pytest.importorskip("onnxscript", reason=f"onnxscript {WHY}")

NAMES = ms.nn.names("recurrent")
COMPLEX = [name for name in NAMES if getattr(ms.nn.get(name), "field", "real") == "complex"]


def plain(name):
    cls = ms.nn.get(name)
    options = {"capacity": 16} if cls.grows else {}
    options |= {"memory": (3, 2)} if name == "ntm" else {"memory": (3, 2, 2)} if name == "matntm" else {}
    layer = ms.nn.create(name, **cls.small_sizes, **options, generator=torch.Generator().manual_seed(1)).eval()
    layer.remove_parametrizations()
    return layer


def exported(layer, path):
    steps, batch = torch.export.Dim("steps"), torch.export.Dim("batch")
    with torch.no_grad():
        x = torch.randn(5, 3, *layer.input_shape)
        shapes = ({0: steps, 1: batch},)
        torch.onnx.export(layer, (x,), path, dynamic_shapes=shapes, dynamo=True, verbose=False)
    return onnxruntime.InferenceSession(path)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMPLEX])
def test_a_real_network_runs_in_onnxruntime_at_any_length_and_batch(name, tmp_path):
    layer = plain(name)
    session = exported(layer, tmp_path / "layer.onnx")
    for steps, batch in ((5, 3), (9, 4), (1, 1)):
        x = torch.randn(steps, batch, *layer.input_shape, generator=torch.Generator().manual_seed(steps))
        found = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        wanted = [leaf.detach() for leaf in tree_leaves(layer(x))]
        torch.testing.assert_close([torch.as_tensor(part) for part in found], wanted, atol=1e-5, rtol=1e-4)


def refusals(layer, path):
    """Return the lines of an error of an export and of what it came from."""
    with pytest.raises(Exception, match=type(layer).__name__.removeprefix("Parametrized")) as caught:
        exported(layer, path)
    lines, error = [], caught.value
    while error is not None:
        lines.append(str(error))
        error = error.__cause__ or error.__context__
    return lines


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_network_refuses_in_one_line(name, tmp_path):
    line = f"{ms.nn.get(name).__name__} computes with complex numbers, which ONNX does not have"
    assert line in refusals(plain(name), tmp_path / "layer.onnx")


def test_a_layer_with_its_maps_is_refused_in_one_line(tmp_path):
    line = "ExpRNN is exported to ONNX after remove_parametrizations()"
    assert line in refusals(ms.nn.ExpRNN(3, 4), tmp_path / "layer.onnx")


@pytest.mark.parametrize("name", ["rnn", "gla", "relrnn"])
def test_the_exporter_by_traces_is_refused_in_one_line(name, tmp_path):
    layer = plain(name)
    with pytest.raises(ValueError, match=r"^\w+ is exported by torch\.onnx\.export\(\.\., dynamo=True\) alone$"):
        torch.onnx.export(layer, (torch.randn(5, 3, 3),), tmp_path / "layer.onnx", dynamo=False)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_the_exporter_by_traces_knows_lstm_and_gru_at_any_length(name, tmp_path):
    layer, path = plain(name), tmp_path / "layer.onnx"
    axes = {"input_names": ["x"], "dynamic_axes": {"x": {0: "steps", 1: "batch"}}}
    torch.onnx.export(layer, (torch.randn(5, 3, 3),), path, dynamo=False, **axes)
    x = torch.randn(9, 2, 3)
    (y, *_) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.as_tensor(y), layer(x)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["memrnn", "transformer"])
def test_a_full_memory_gives_nan_and_not_other_numbers(name, tmp_path):
    layer = plain(name)
    session = exported(layer, tmp_path / "layer.onnx")
    (key,) = (part.name for part in session.get_inputs())
    y = torch.as_tensor(session.run(None, {key: torch.randn(18, 2, 3).numpy()})[0])
    assert y[:16].isfinite().all()
    assert y[16:].isnan().all()
