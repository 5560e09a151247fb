"""Sections that take no time, for tests of what surrounds them."""

from contextlib import contextmanager

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.profiles import Measurement, ProfileSection, Quantity, Scalar, all_sections
from mnemoscope.profiles.section import SECTIONS

all_sections()
TRUE = dict(SECTIONS._entries)
"""Our own sections: they are imported once, and must not be filed in a table that a test throws away."""


def make(name, order, run, *, once=False, averaged=(), seconds=1.0, kinds=("recurrent",), numbers=("total",), **more):
    """Return a class of section; `run` is called with the context and returns a Measurement; `more` are attributes."""

    class Fake(ProfileSection):
        quantities = tuple(
            Quantity(name=each, title=f"{name} {each}", unit="steps", compared=True, section=name) for each in numbers
        )

        def seconds(self, network, context):
            return seconds

        def run(self, network, context):
            return run(context)

    Fake.name, Fake.title, Fake.order = name, f"The {name}", order
    Fake.once, Fake.averaged, Fake.kinds = once, averaged, kinds
    for attribute, value in more.items():
        setattr(Fake, attribute, value)
    return Fake


def number(name="total", factor=1.0):
    """Return a run that finds a number and a curve of the seed."""

    def run(context):
        value = factor * (context.seed + 0.1)
        return Measurement(scalars={name: Scalar(value=value)}, data={"curve": [value, 2 * value]})

    return run


def refuse(context):
    """Say that it does not apply."""
    raise UserError("it needs\na matrix")


def fail(context):
    """Fail as a stranger's code does."""
    raise ZeroDivisionError("division by zero")


@contextmanager
def only(*classes):
    """Replace all sections."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SECTIONS, "_entries", {cls.name: cls for cls in classes})
        patch.setattr(SECTIONS, "_plugins_loaded", True)
        yield
