"""Arrays that come in: what is taken, in which form it goes on, and the one form of an error."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mnemoscope.core.arrays import matrix, non_negative, positive, read_array, square, vector
from mnemoscope.core.errors import UserError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(array=arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=FINITE))
def test_numpy_torch_and_lists_give_the_same(array):
    for given_array in (array, torch.from_numpy(array), array.tolist(), np.asfortranarray(array)):
        found = matrix("W", given_array)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, array)


def test_what_goes_on_is_a_copy():
    array = np.ones((2, 2))
    tensor = torch.ones(2, 2, dtype=torch.float64)
    matrix("W", array)[0, 0] = 5
    matrix("W", tensor)[0, 0] = 5
    assert array[0, 0] == tensor[0, 0] == 1


@pytest.mark.parametrize(
    "value",
    [
        torch.eye(2, requires_grad=True),
        torch.eye(2, dtype=torch.bfloat16),
        torch.eye(2, dtype=torch.float16),
        torch.eye(2, dtype=torch.int64),
        torch.eye(2, dtype=torch.bool),
        torch.eye(2).to_sparse(),
        torch.eye(2, dtype=torch.complex64).conj().imag + torch.eye(2),
        torch.eye(4)[::3, ::3],
        np.eye(2, dtype=np.longdouble),
        np.eye(2, dtype=bool),
        np.eye(2, dtype=">f4"),
        ((1, 0), (0, 1)),
    ],
)
def test_every_real_type_is_taken(value):
    found = square("W", value)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.eye(2))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1)])
def test_a_row_or_a_column_is_a_vector(shape):
    np.testing.assert_array_equal(vector("v", np.arange(3).reshape(shape)), [0, 1, 2])


@pytest.mark.parametrize(
    ("check", "value", "said"),
    [
        (matrix, np.zeros(3), "W must be a matrix, got an array of shape (3,)"),
        (matrix, np.zeros((0, 3)), "W must be a matrix, got an array of shape (0, 3)"),
        (matrix, 3.0, "W must be a matrix, got an array of shape ()"),
        (matrix, [[1, 2], [3]], "W must be an array of real numbers, got [[1, 2], [3]]"),
        (matrix, "abc", "W must be an array of real numbers, got 'abc'"),
        (matrix, None, "W must be an array of real numbers, got None"),
        (matrix, [[1j]], "W must be an array of real numbers, got [[1j]]"),
        (
            matrix,
            torch.zeros(1, 1, dtype=torch.complex64),
            "W must be an array of real numbers, got tensor([[0.+0.j]])",
        ),
        (matrix, torch.zeros(1, 1, device="meta"), "W must be an array of real numbers, got tensor(..., device='meta'"),
        (matrix, [[10**400]], "W must be an array of real numbers, got [[1000"),
        (matrix, [[np.nan, 1, np.inf]], "W must be finite, got 2 NaN or infinite of 3 entries"),
        (square, np.zeros((2, 3)), "W must be a square matrix, got an array of shape (2, 3)"),
        (square, np.zeros((0, 0)), "W must be a square matrix, got an array of shape (0, 0)"),
        (vector, np.zeros((2, 2)), "W must be a vector, got an array of shape (2, 2)"),
        (vector, [], "W must be a vector, got an array of shape (0,)"),
        (vector, 1.0, "W must be a vector, got an array of shape ()"),
    ],
)
def test_errors_of_arrays(check, value, said):
    with pytest.raises(UserError) as error:
        check("W", value)
    assert str(error.value).startswith(said)
    assert len(str(error.value)) < 200


def test_errors_of_sizes():
    assert square("W", np.eye(3), 3).shape == (3, 3)
    with pytest.raises(UserError, match=r"W must be of shape \(2, 2\), got \(3, 3\)"):
        square("W", np.eye(3), 2)
    assert vector("v", np.ones(3), 3).shape == (3,)
    with pytest.raises(UserError, match="v must be of length 2, got 3"):
        vector("v", np.ones((1, 3)), 2)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), torch.tensor(0.25), np.array(4.0), 1e-300])
def test_positive_numbers(value):
    assert positive("noise", value) == float(value)
    assert non_negative("noise", value) == float(value)


@pytest.mark.parametrize(
    "value", [-1, -1e-300, np.nan, np.inf, -np.inf, "1", None, True, [1], 1j, 10**400, np.ones(2), torch.ones(2)]
)
def test_what_is_not_positive(value):
    with pytest.raises(UserError, match="^noise must be a positive number, got "):
        positive("noise", value)
    with pytest.raises(UserError, match="^noise must be a number of at least 0, got "):
        non_negative("noise", value)


def test_zero():
    assert non_negative("noise", 0) == 0.0
    with pytest.raises(UserError, match="noise must be a positive number, got 0"):
        positive("noise", 0)


@given(array=arrays(np.float64, array_shapes(max_dims=3), elements=FINITE))
def test_npy_and_npz_come_back_bit_for_bit(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "a.npy", array)
    np.savez_compressed(folder / "a.npz", anything=array)
    for name in ("a.npy", "a.npz"):
        found = read_array(folder / name)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, array)


@given(
    array=arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=FINITE),
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
