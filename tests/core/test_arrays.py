"""Arrays that come in: what is taken, in which form it goes on, and the one form of an error."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mnemoscope.core.arrays import matrix, non_negative, positive, square, vector
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
