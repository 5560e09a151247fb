"""A run from its beginning to its end: what is written comes back, exactly."""

import errno
import json
import math
import os

import numpy as np
import pytest
import torch

from mnemoscope import runs
from mnemoscope.core.errors import UserError


def test_metrics_come_back_exactly(root, spec):
    records = [
        {"step": 1, "loss": 0.1 + 0.2, "note": "first\nline"},
        {"step": 2, "loss": math.inf, "grad": -math.inf},
        {"step": 3, "loss": 5e-324, "many": [1, 2.5, None], "ok": True},
        {"step": 4, "loss": np.float32(0.1), "score": torch.tensor(0.25, dtype=torch.float64), "n": np.int64(7)},
    ]
    with runs.open(spec) as run:
        for record in records:
            run.append(record)
        run.append({"step": 5, "loss": math.nan})
        run.finish()
    found = runs.load(run.folder).metrics
    assert found[:3] == records[:3]
    assert found[3] == {"step": 4, "loss": float(np.float32(0.1)), "score": 0.25, "n": 7}
    assert math.isnan(found[4]["loss"])
    np.testing.assert_array_equal(found.column("step"), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(runs.load(run.folder).column("score"), [np.nan] * 3 + [0.25, np.nan])
    with pytest.raises(UserError, match="got 'los'; did you mean 'loss'"):
        found.column("los")


def test_the_file_is_json_lines_that_others_can_read(root, spec):
    with runs.open(spec) as run:
        run.append({"step": 1, "loss": 0.5})
        run.append({"step": 2, "loss": math.nan})
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    assert lines[0]["loss"] == 0.5


def test_tensors_of_every_kind_come_back_bit_for_bit(root, spec):
    kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]
    base = torch.randn(6, 4)
    tensors = {str(kind): (base * 10).to(kind) for kind in kinds}
    tensors |= {
        "bool": base > 0,
        "complex64": torch.randn(3, 2, dtype=torch.complex64),
        "complex128": torch.randn(2, dtype=torch.complex128).conj(),
        "scalar": torch.tensor(1.5),
        "complex scalar": torch.tensor(1 + 2j),
        "empty": torch.empty(0, 3),
        "view": base[::2, 1:],
        "same memory": base,
        "transposed": base.T,
        "nan": torch.tensor([math.nan, -0.0, math.inf]),
        "generator": torch.Generator().manual_seed(5).get_state(),
        "parameter": torch.nn.Parameter(torch.randn(2)),
        "a/../b\n": torch.ones(1),
    }
    state = {"best": math.inf, "epoch": 3, "order": (1, 2), "nested": {"a": [None, -0.0]}}
    with runs.open(spec) as run:
        run.checkpoint(7, tensors, state)
        run.close()
    found = runs.load(run.folder).latest()
    assert found.step == 7
    assert found.state == {"best": math.inf, "epoch": 3, "order": [1, 2], "nested": {"a": [None, -0.0]}}
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        own = found.tensors[name]
        assert (own.dtype, own.shape) == (tensor.dtype, tensor.shape), name
        ours, theirs = (one.detach().resolve_conj().contiguous().reshape(-1) for one in (own, tensor))
        assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)), name


def test_going_on_from_a_checkpoint_gives_every_line_once(root, spec):
    with runs.open(spec) as run:
        assert not run.resumed
        assert run.latest() is None
        for step in range(1, 8):
            run.append({"step": step})
            if step == 5:
                run.checkpoint(5, {}, {"at": 5})
    with runs.open(spec) as run:
        assert run.resumed
        assert run.state == "interrupted"
        assert run.latest().state == {"at": 5}
        for step in range(6, 11):
            run.append({"step": step})
        run.finish({"steps": 10})
    record = runs.load(run.folder)
    assert [one["step"] for one in record.metrics] == list(range(1, 11))
    assert (record.status, record.summary, len(record.details.sessions)) == ("finished", {"steps": 10}, 2)


def test_without_a_checkpoint_it_starts_anew(root, spec):
    with runs.open(spec) as run:
        run.append({"step": 1})
    with runs.open(spec) as run:
        assert run.latest() is None
        run.append({"step": 1})
    assert len(runs.load(run.folder).metrics) == 1


def test_metrics_alone_go_on_where_they_were(root, spec):
    for step in range(3):
        with runs.open(spec, kind="study") as run:
            run.append({"step": step})
    assert [one["step"] for one in runs.load(run.folder).metrics] == [0, 1, 2]


def test_the_last_two_and_the_best_are_kept(root, spec):
    with runs.open(spec) as run:
        for step in range(1, 7):
            run.checkpoint(step, {"w": torch.full((2,), float(step))}, best=step in (1, 3))
        kept = {path.name for path in (run.folder / "checkpoints").iterdir()}
        assert kept == {f"step-{step}.{end}" for step in (3, 5, 6) for end in ("json", "safetensors")}
        assert run.best().step == 3
        assert run.latest().step == 6
    with runs.open(spec, keep=1) as run:
        assert run.latest().step == 6
        run.checkpoint(7, {})
        assert {path.name for path in (run.folder / "checkpoints").glob("*.json")} == {"step-3.json", "step-7.json"}
    assert runs.load(run.folder).best().tensors["w"].tolist() == [3.0, 3.0]


def test_a_step_can_be_written_again(root, spec):
    with runs.open(spec) as run:
        for value in range(4):
            run.checkpoint(2, {"w": torch.tensor(float(value))}, {"value": value})
            assert run.latest().state == {"value": value}
            assert run.latest().tensors["w"] == value
        assert len(list((run.folder / "checkpoints").iterdir())) == 2
        with pytest.raises(UserError, match="step must be at least 2"):
            run.checkpoint(1, {})


def test_looking_at_the_latest_while_writing_cuts_nothing(root, spec):
    with runs.open(spec) as run:
        run.checkpoint(1, {})
        run.append({"step": 2})
        assert run.latest().step == 1
        run.append({"step": 3})
    assert len(runs.load(run.folder).metrics) == 2


def left_by(spec, error):
    run = runs.open(spec)
    run.append({"step": 1})
    run.__exit__(type(error), error, None)
    return run.folder


def test_how_a_run_ends(root):
    folder = left_by({"end": "error"}, RuntimeError("no\nluck"))
    assert (runs.load(folder).status, runs.load(folder).reason) == ("failed", "RuntimeError: no luck")
    folder = left_by({"end": "ctrl-c"}, KeyboardInterrupt())
    assert runs.load(folder).status == "interrupted"
    assert len(runs.load(folder).metrics) == 1
    with runs.open({"end": "failed"}) as run:
        run.fail("NaN loss at step 3")
        with pytest.raises(UserError, match="is failed: open it again"):
            run.append({"step": 2})
    with runs.open({"end": "failed"}) as run:
        assert run.state == "failed"
    assert runs.load(run.folder).reason == "NaN loss at step 3", "reading changes nothing"
    with runs.open({"end": "failed"}) as run:
        run.append({"step": 2})
        assert runs.load(run.folder).status == "running"
        assert runs.load(run.folder).owner.endswith("(this one)")
        run.finish()
    assert runs.load(run.folder).status == "finished"


def test_nothing_is_added_to_a_finished_run(root, spec, contents):
    with runs.open(spec) as run:
        run.append({"step": 1})
        run.finish({"score": 1.0})
    before = contents(run.folder)
    with runs.open(spec) as run:
        assert run.finished
        assert run.summary == {"score": 1.0}
        for write in (lambda: run.append({"a": 1}), lambda: run.checkpoint(1, {}), lambda: run.fail("x"), run.finish):
            with pytest.raises(UserError, match="is finished: nothing is added"):
                write()
    assert contents(run.folder) == before
    with pytest.raises(UserError, match="is closed: open it again"):
        run.append({"a": 1})


def test_the_same_configuration_finds_the_same_run(root, spec):
    first = runs.open(spec)
    first.close()
    again = runs.open(dict(reversed(spec.items())))
    again.close()
    other = runs.open(spec, resume=False)
    other.close()
    third = runs.open(spec, resume=False)
    third.close()
    assert first.folder == again.folder
    assert [other.id, third.id] == [f"{first.id}-2", f"{first.id}-3"]
    assert not other.resumed


def test_a_folder_with_another_configuration_is_refused(tmp_path, spec, contents):
    runs.open(spec, folder=tmp_path / "mine").close()
    before = contents(tmp_path)
    with pytest.raises(UserError, match="run mine has another configuration: lr is 0.1 there and 0.2 here"):
        runs.open(spec | {"lr": 0.2}, folder=tmp_path / "mine")
    with pytest.raises(UserError, match='kind is "fit" there and "capacity" here'):
        runs.open(spec, folder=tmp_path / "mine", kind="capacity")
    with pytest.raises(UserError, match="folder must be one without a run when resume is False"):
        runs.open(spec, folder=tmp_path / "mine", resume=False)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"spec": [1]}, "spec must be a mapping, got [1]"),
        ({"spec": {}, "kind": "fitt"}, "did you mean 'fit'"),
        ({"spec": {}, "keep": 0}, "keep must be a positive integer, got 0"),
        ({"spec": {"a": object()}}, "spec.a must be JSON"),
    ],
)
def test_mistakes_at_opening(root, given, words):
    with pytest.raises(UserError) as caught:
        runs.open(**given)
    assert words in str(caught.value)
    assert not root.exists()


def test_mistakes_in_writing(root, spec):
    with runs.open(spec) as run:
        for record in ({}, {"crc": 1}):
            with pytest.raises(UserError, match="a record of metrics must be"):
                run.append(record)
        with pytest.raises(UserError, match="a metric must be a number, got an array of shape"):
            run.append({"loss": torch.ones(3)})
        with pytest.raises(UserError, match="must be JSON"):
            run.append({"loss": object()})
        with pytest.raises(UserError, match="step must be a whole number"):
            run.checkpoint(-1, {})
        with pytest.raises(UserError, match=r"tensors\['w'\] must be a dense tensor"):
            run.checkpoint(1, {"w": [1.0]})
        with pytest.raises(UserError, match="the name of a tensor"):
            run.checkpoint(1, {"__metadata__": torch.ones(1)})
        with pytest.raises(UserError, match=r"the keys of state.optimizer must be text, got 0"):
            run.checkpoint(1, {}, {"optimizer": {0: 1}})
        run.append({"step": 1})
    assert runs.load(run.folder).metrics == [{"step": 1}]
    assert runs.load(run.folder).latest() is None


def test_the_environment_is_recorded_and_compared(root, spec, monkeypatch):
    with runs.open(spec) as run:
        found = run.environment
    assert found["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert found["versions"]["numpy"] == np.__version__
    assert found["threads"]["torch_threads"] == torch.get_num_threads()
    assert found["machine"]["cores"] >= 1
    assert set(found["commit"]) == {"mnemoscope", "here"}
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    with pytest.warns(runs.RecordWarning, match="OMP NUM THREADS: .* before, 77 now"), runs.open(spec) as run:
        run.append({"step": 1})
    assert "77 now" in runs.load(run.folder).details.sessions[-1]["changes"][0]


def test_a_step_that_cannot_be_written_again_stays_as_it_was(root, spec, monkeypatch):
    with runs.open(spec) as run:
        run.checkpoint(2, {"w": torch.tensor(1.0)}, {"value": 1})

        def full(*_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("mnemoscope.runs.checkpoints.write_document", full)  # the tensors are written by then
            with pytest.raises(OSError, match="No space"):
                run.checkpoint(2, {"w": torch.tensor(2.0)}, {"value": 2})
        found = runs.load(run.folder).latest()
        assert (found.state, found.tensors["w"]) == ({"value": 1}, 1.0)
        run.checkpoint(2, {"w": torch.tensor(3.0)}, {"value": 3})
        assert runs.load(run.folder).latest().tensors["w"] == 3.0


def test_a_line_that_was_half_written_is_written_again(root, spec, monkeypatch):
    write = os.write

    def half(descriptor, data):
        write(descriptor, bytes(data[: len(data) // 2]))
        raise OSError(28, "No space left on device")

    with runs.open(spec) as run:
        run.append({"step": 1})
        run.append({"step": 2})
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(UserError, match="the disk is full"):
                run.checkpoint(2, {})
        assert runs.load(run.folder).metrics == [{"step": 1}], "the first is flushed at once, the second not at all"
        assert (run.folder / "metrics.jsonl").read_bytes().endswith(b"}\n")
        run.append({"step": 3})
        run.finish()
    assert [one["step"] for one in runs.load(run.folder).metrics] == [1, 2, 3]


def test_a_run_whose_last_lines_cannot_be_written_is_not_finished(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    run = runs.open({"a": 1}, folder=tmp_path / "run", kind="fit")
    run.append({"step": 1, "loss": 0.5})
    with monkeypatch.context() as patched:
        patched.setattr("mnemoscope.runs.metrics.write_all", full)
        with pytest.raises(UserError, match="the disk is full"):
            run.finish({"score": 1.0})
    run.close()
    with runs.open({"a": 1}, folder=tmp_path / "run", kind="fit") as again:
        assert not again.finished
        again.latest()
        again.append({"step": 1, "loss": 0.5})
        again.finish({"score": 1.0})
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1
