"""Arrays from files: what is read, what is refused, and that nothing is ever unpickled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import read_array

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(array=arrays(np.float64, array_shapes(max_dims=3), elements=NUMBERS))
def test_npy_and_npz_come_back_bit_for_bit(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "a.npy", array)
    np.savez_compressed(folder / "a.npz", anything=array)
    for name in ("a.npy", "a.npz"):
        found = read_array(folder / name)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, array)


@given(
    array=arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=NUMBERS),
    form=st.sampled_from([("csv", ","), ("tsv", "\t"), ("txt", " "), ("csv", ";"), ("csv", ", ")]),
    title=st.booleans(),
)
def test_text_comes_back_bit_for_bit(tmp_path_factory, array, form, title):
    ending, separator = form
    rows = [separator.join(map(repr, row)) for row in array.tolist()]
    titles = [separator.join(f"x{i}" for i in range(array.shape[1]))] if title else []
    file = tmp_path_factory.mktemp("arrays") / f"a.{ending}"
    file.write_text("\n".join([*titles, *rows]) + "\n")
    np.testing.assert_array_equal(read_array(file), array)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float32, np.float16, ">f8", "<i2"])
def test_types_become_float64(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.array([[0, 1], [1, 0]], dtype=dtype))
    found = read_array(str(tmp_path / "a.npy"))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[0, 1], [1, 0]])


def test_text_with_comments_blank_lines_and_a_mark_of_the_byte_order(tmp_path):
    (tmp_path / "a.csv").write_text("﻿# made by hand\n\nleft, right\n1, -2e3\n\n+.5, 4\n", encoding="utf-8")
    np.testing.assert_array_equal(read_array(tmp_path / "a.csv"), [[1, -2000], [0.5, 4]])


def test_upper_case_endings(tmp_path):
    (tmp_path / "A.CSV").write_text("1 2\n3 4\n")
    assert read_array(tmp_path / "A.CSV").shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.npy", b"", "is not an array: it does not begin as a file of NumPy does"),
        ("a.npy", b"1,2\n3,4\n", "is not an array: it does not begin as a file of NumPy does"),
        ("a.npy", b"\x93NUMPY\x01\x00", "is not an array: "),
        ("a.npz", b"PK\x03\x04 and no more", "is not an array: "),
        ("a.npy", b"\x80\x04\x95pickle", "is not an array: it does not begin as a file of NumPy does"),
        ("a.csv", b"", "is not an array: it is empty"),
        ("a.csv", b"a,b\n", "is not an array: it has titles and no numbers"),
        ("a.csv", b"1,2\n3\n", "is not an array: its rows have different lengths, from 1 to 2 numbers"),
        ("a.csv", b"1,2\n3,x\n", "is not an array: row 2: could not convert string to float: 'x'"),
        ("a.csv", b"1,2\n3,\n", "is not an array: row 2: could not convert string to float: ''"),
        ("a.csv", b"\xff\xfe\x00\x01", "is not an array: 'utf-8' codec can't decode"),
        ("a.mat", b"", "must be named .npy, .npz, .csv, .tsv, .txt, got"),
        ("a", b"", "must be named .npy, .npz, .csv, .tsv, .txt, got"),
    ],
)
def test_what_is_no_array_is_one_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as error:
        read_array(tmp_path / name)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_truncated_files(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((10, 10)))
    whole = (tmp_path / "a.npy").read_bytes()
    for size in range(0, len(whole), 37):
        (tmp_path / "a.npy").write_bytes(whole[:size])
        with pytest.raises(UserError, match="is not an array"):
            read_array(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([1 + 2j]), "must be an array of real numbers, got numbers of type complex128"),
        (np.array(["a"]), "must be an array of real numbers, got numbers of type <U1"),
        (np.zeros((0, 3)), r"must be an array with numbers, got an array of shape \(0, 3\)"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "must be an array of real numbers"),
    ],
)
def test_arrays_of_something_else(tmp_path, array, said):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UserError, match=said):
        read_array(tmp_path / "a.npy")


def test_missing_files_folders_and_archives(tmp_path):
    with pytest.raises(UserError, match="none.npy' does not exist"):
        read_array(tmp_path / "none.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(UserError, match="folder.npy' is a folder"):
        read_array(tmp_path / "folder.npy")
    np.savez(tmp_path / "two.npz", U=np.eye(2), V=np.eye(2))
    with pytest.raises(UserError, match="two.npz' must hold one array, got U, V"):
        read_array(tmp_path / "two.npz")


class Payload:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickles_do_not_run(tmp_path, name):
    array = np.array([Payload(tmp_path / "ran")], dtype=object)
    if name == "a.npy":
        np.save(tmp_path / name, array, allow_pickle=True)
    else:
        np.savez(tmp_path / name, array)
    with pytest.raises(UserError, match="it holds pickled objects, which could run code and are never loaded"):
        read_array(tmp_path / name)
    assert not (tmp_path / "ran").exists()
