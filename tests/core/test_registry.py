"""Registries: names, nearest matches, plugins of other packages."""

from importlib.metadata import EntryPoint

import pytest

from mnemoscope.core import registry as module
from mnemoscope.core.errors import UserError
from mnemoscope.core.registry import Registry


@pytest.fixture
def plugins(monkeypatch):
    """Entry points that pretend to be installed; the list of groups that were asked for."""
    points, asked = [], []

    def entry_points(*, group):
        asked.append(group)
        return points

    monkeypatch.setattr(module, "entry_points", entry_points)
    return points, asked


@pytest.fixture
def table(plugins):
    made = Registry("network", "mnemoscope.networks")
    made.register("rnn")("the RNN")
    made.register("nnrnn")("the nnRNN")
    return made


def test_register_and_look_up(table):
    assert table["rnn"] == "the RNN"
    assert table.names() == ["nnrnn", "rnn"] == list(table)
    assert "rnn" in table
    assert "lstm" not in table


def test_register_returns_what_it_files(table):
    thing = object()
    assert table.register("thing")(thing) is thing


def test_a_name_is_given_once(table):
    with pytest.raises(UserError, match="^the network name 'rnn' is taken by 'the RNN'$"):
        table.register("rnn")("another")
    assert table["rnn"] == "the RNN"


def test_an_unknown_name(table):
    with pytest.raises(UserError, match=r"^there is no network named 'nnrn'; did you mean 'nnrnn'\?$"):
        table["nnrn"]
    with pytest.raises(UserError, match="^there is no network named 'zzzzzz'; there are nnrnn, rnn$"):
        table["zzzzzz"]


def test_many_names_are_counted_and_where_they_are_listed_is_said():
    table = Registry("network", "mnemoscope.tests", object, listed="mnemoscope networks")
    for number in range(20):
        table.register(f"net-{number}")(object())
    with pytest.raises(UserError, match="named 'zzzzzz'; `mnemoscope networks` lists the 20 that there are$"):
        table["zzzzzz"]


def test_plugins_are_found_when_first_needed_and_once(table, plugins):
    points, asked = plugins
    points.append(EntryPoint("their-rnn", "collections:OrderedDict", "mnemoscope.networks"))
    assert table["rnn"] == "the RNN"
    assert asked == []
    assert table["their-rnn"].__name__ == "OrderedDict"
    assert table.names() == ["nnrnn", "rnn", "their-rnn"]
    assert asked == ["mnemoscope.networks"]


def test_a_plugin_does_not_replace_ours(table, plugins):
    plugins[0].append(EntryPoint("rnn", "collections:OrderedDict", "mnemoscope.networks"))
    assert table.names() == ["nnrnn", "rnn"]
    assert table["rnn"] == "the RNN"


def test_a_broken_plugin_warns_and_the_others_stay(table, plugins):
    plugins[0].append(EntryPoint("broken", "no_such_package_anywhere:Net", "mnemoscope.networks"))
    plugins[0].append(EntryPoint("their-rnn", "collections:OrderedDict", "mnemoscope.networks"))
    with pytest.warns(
        UserWarning, match="the network plugin 'no_such_package_anywhere:Net' could not be loaded: No module"
    ):
        assert table.names() == ["nnrnn", "rnn", "their-rnn"]
