"""Parts that take no time, for tests of what surrounds them."""

from contextlib import contextmanager

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.section import PARTS, Part, PartResult, Scalar, parts
from mnemoscope.report import Headline, Section

parts()
TRUE = dict(PARTS._entries)
"""Our own parts: they are imported once, and must not be filed in a table that a test throws away."""


def make(name, order, run, *, once=False, averaged=(), seconds=1.0, kinds=("recurrent",)):
    """Return a class of part; `run` is called with the context and returns a PartResult."""

    class Fake(Part):
        def seconds(self, network, context):
            return seconds

        def run(self, network, context):
            return run(context)

        def section(self, rows, subjects):
            return Section(name=name, title=name, headline=Headline(value="1", unit="", meaning=name))

    Fake.name, Fake.title, Fake.order = name, f"The {name}", order
    Fake.once, Fake.averaged, Fake.kinds = once, averaged, kinds
    return Fake


def number(name="total", factor=1.0):
    """Return a run that finds a number and a curve of the seed."""

    def run(context):
        value = factor * (context.seed + 0.1)
        return PartResult(scalars={name: Scalar(value=value, unit="steps")}, data={"curve": [value, 2 * value]})

    return run


def refuse(context):
    """Say that it does not apply."""
    raise UserError("it needs\na matrix")


def fail(context):
    """Fail as a stranger's code does."""
    raise ZeroDivisionError("division by zero")


@contextmanager
def only(*classes):
    """Replace all parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PARTS, "_entries", {cls.name: cls for cls in classes})
        patch.setattr(PARTS, "_plugins_loaded", True)
        yield
