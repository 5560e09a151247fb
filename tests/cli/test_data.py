"""The command data."""

import gzip

import pytest
from tests.tasks.fake_data import write_data


def test_without_a_folder_all_is_missing_and_it_says_where_to_get_it(call, call_json, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    text = call("data").stdout
    assert text.startswith("No data folder is named: give --data FOLDER or set MNEMOSCOPE_DATA.")
    for words in (
        "MNIST",
        "Tiny Shakespeare",
        "Penn Treebank",
        "licence: CC BY-SA 3.0",
        "licence: public domain",
        "LDC99T42",
    ):
        assert words in text
    assert text.count("https://") == 6
    found = call_json("data")
    assert found["folder"] is None
    names = ["mnist", "tinyshakespeare", "ptb", "symbols", "cifar10", "aan"]
    assert [one["name"] for one in found["datasets"]] == names
    assert {file["state"] for one in found["datasets"] for file in one["files"]} == {"missing"}
    assert not any(one["complete"] for one in found["datasets"])


def test_files_are_found_and_judged(call, call_json, tmp_path):
    folder = write_data(tmp_path / "data")
    (folder / "ptb" / "ptb.test.txt").unlink()
    (folder / "ptb" / "ptb.valid.txt").write_bytes(bytes(399782))
    broken = folder / "mnist" / "t10k-labels-idx1-ubyte.gz"
    broken.write_bytes(gzip.compress(b"x" * 500)[:-9])
    found = {file["name"]: file for one in call_json("data", "--data", folder)["datasets"] for file in one["files"]}
    states = {name: file["state"] for name, file in found.items()}
    assert states["train-images-idx3-ubyte"] == "altered"
    assert states["t10k-labels-idx1-ubyte"] == "damaged"
    assert states["ptb.test.txt"] == "missing"
    assert states["ptb.valid.txt"] == "not checked"
    assert found["input.txt"]["path"] == str(folder / "tinyshakespeare" / "input.txt")
    text = call("data", "--data", folder).stdout
    assert "  damaged  t10k-labels-idx1-ubyte" in " ".join(text.split("\n")).replace("   ", "  ")
    assert "altered: not the published file" in text
    assert "mnist/train-images-idx3-ubyte.gz" in text


def test_the_environment_names_the_folder(call_json, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(tmp_path))
    assert call_json("data")["folder"] == str(tmp_path)


@pytest.mark.parametrize("columns", [40, 80])
def test_nothing_is_cut(call, tmp_path, columns):
    assert "…" not in call("data", "--data", write_data(tmp_path / "data"), columns=columns).stdout


def test_a_folder_that_is_not_there(mistake):
    assert mistake("data", "--data", "/nowhere") == "the data folder must be a folder that exists, got '/nowhere'"
