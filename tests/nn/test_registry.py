"""Table of networks: what it says of files is what they register, and nothing is imported before it is used."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import mnemoscope as ms
from mnemoscope.nn import networks


def test_table_is_what_the_files_register():
    found = {}
    for file in pkgutil.iter_modules(networks.__path__):
        module = import_module(f"{networks.__name__}.{file.name}")
        for name, thing in vars(module).items():
            own = isinstance(thing, type) and thing.__module__ == module.__name__ and "card" in vars(thing)
            if own and not name.startswith("_"):
                found[thing.card.name] = f"{file.name}:{name}"
    assert found == networks.TABLE


def test_every_class_is_an_attribute_of_nn():
    for name in ms.nn.names():
        cls = ms.nn.get(name)
        assert getattr(ms.nn, cls.__name__) is cls, name
        assert cls.__name__ in dir(ms.nn), name


def test_importing_nn_loads_no_network():
    code = "import sys, mnemoscope.nn; print([m for m in sys.modules if m.startswith('mnemoscope.nn.networks.')])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ms.nn.Nothing
