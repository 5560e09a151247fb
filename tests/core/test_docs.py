"""Reading NumPy-style docstrings."""

import inspect

import pytest

import mnemoscope as ms
from mnemoscope.core.docs import (
    REQUIRED,
    Argument,
    arguments,
    function_arguments,
    function_summary,
    parameter_docs,
    summary,
)
from mnemoscope.nn.options import option_defaults


class Base:
    """The base
    in two lines.

    Parameters
    ----------
    size
        How large.
    device, dtype
        Of the parameters,
        both.
    """

    def __init__(self, size: int, *, device: str | None = None, dtype: "str" = "float32", hidden=1):
        pass


class Child(Base):
    """The child.

    More of it, which is not the summary.

    Parameters
    ----------
    rate : float, optional
        How fast: ``"slow"`` or `fast`.

        Second paragraph.
    size
        How large the child is.
    *rest, **more
        Passed on.

    Returns
    -------
    nothing
        Not a parameter.
    """

    def __init__(self, size, *rest, rate=0.5, **more):
        super().__init__(size, **more)


class Silent(Child):
    pass


def test_summary_is_the_first_paragraph_of_the_class_itself():
    assert summary(Base) == "The base in two lines."
    assert summary(Child) == "The child."
    assert summary(Silent) == ""


def test_parameter_docs():
    found = parameter_docs(Child)
    assert found == {
        "rate": ("float", 'How fast: "slow" or fast. Second paragraph.'),
        "size": ("", "How large the child is."),
        "rest": ("", "Passed on."),
        "more": ("", "Passed on."),
        "device": ("", "Of the parameters, both."),
        "dtype": ("", "Of the parameters, both."),
    }
    assert parameter_docs(Silent) == found


@pytest.mark.parametrize(
    "docstring",
    [
        None,
        "",
        "Parameters",
        "Parameters\n----------",
        "Words.\n\nParameters\n----------\n",
        "Words.\n\nArgs:\n    size: Google's style.",
        "Words.\n\nReturns\n-------\nint\n    A number.",
        "Parameters\n----------\nReturns\n-------\nint\n    A number.",
    ],
)
def test_docstrings_without_parameters(docstring):
    cls = type("Undocumented", (), {"__doc__": docstring})
    assert parameter_docs(cls) == {}


def test_arguments_of_the_signature():
    assert arguments(Child) == [
        Argument("size", "", REQUIRED, "How large the child is."),
        Argument("*rest", "", REQUIRED, "Passed on."),
        Argument("rate", "float", 0.5, 'How fast: "slow" or fast. Second paragraph.'),
        Argument("**more", "", REQUIRED, "Passed on."),
    ]


def test_arguments_that_are_passed_on():
    found = arguments(Silent, accepted={"size", "rate", "device", "dtype"})
    assert [argument.name for argument in found] == ["size", "rate", "device", "dtype"]
    assert found[2:] == [
        Argument("device", "str | None", None, "Of the parameters, both."),
        Argument("dtype", "str", "float32", "Of the parameters, both."),
    ]


@pytest.mark.parametrize("name", ms.nn.names())
def test_every_argument_of_every_network_is_explained(name):
    cls = ms.nn.get(name)
    accepted = option_defaults(cls)
    found = arguments(cls, accepted)
    assert {argument.name for argument in found} == set(accepted)
    sizes = {"recurrent": ["input_size", "hidden_size", "num_layers"], "classifier": ["features", "rank", "length"]}
    sizes["relational"] = ["panels", "answers"]
    first = [argument.name for argument in found]
    assert first[: len(sizes[cls.kind])] == sizes[cls.kind]
    for argument in found:
        assert argument.meaning, f"{cls.__name__} does not explain {argument.name}"
        assert argument.type, f"{cls.__name__} does not annotate {argument.name}"
    own = vars(cls).get("__init__")
    if own is not None and cls.kind == "recurrent":
        given = inspect.signature(own).parameters.values()
        named = {p.name for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} & {*first[3:]}
        assert named == {argument.name for argument in found[3 : 3 + len(named)]}, "its own come before the bases'"
    assert summary(cls).endswith(".")


def measured(W, noise: float = 1.0, *rest: int, horizon: "int | None" = None):
    r"""Measure :math:`J` of `W`
    in two lines.

    More of it.

    Parameters
    ----------
    W : array
        The matrix.
    noise, horizon
        Both: ``0.5`` and :math:`\epsilon`.
    """


def test_functions():
    assert function_summary(measured) == "Measure J of W in two lines."
    assert function_arguments(measured) == [
        Argument("W", "array", REQUIRED, "The matrix."),
        Argument("noise", "float", 1.0, r"Both: 0.5 and \epsilon."),
        Argument("*rest", "int", REQUIRED, ""),
        Argument("horizon", "int | None", None, r"Both: 0.5 and \epsilon."),
    ]
    assert function_summary(lambda: None) == ""
    assert function_arguments(lambda: None) == []
