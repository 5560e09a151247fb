"""References for tests: two tiny networks, measured once a session, in the place of the table that ships."""

import functools
import json

from tests.profiles.fake_sections import TRUE, only

from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Row
from mnemoscope.profiles.runner import Runner, Settings


@functools.lru_cache(maxsize=1)
def _text():
    with only(*TRUE.values()):
        return json.dumps([row.to_dict() for row in _measured()])


def _measured():
    targets = [NetworkSpec("rnn", hidden_size=3), NetworkSpec("orth-rnn", hidden_size=3)]
    return Runner(targets, Settings(quick=True, seeds=2)).run()


def tiny_references(facts, *, quick=False):
    """Return what `mnemoscope.profiles.atlas.rows_like` returns, of two networks."""
    return [Row.from_dict(row) for row in json.loads(_text())]
