"""Table of tasks: what it says of files is what they register, and nothing is imported before it is used."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import mnemoscope as ms
from mnemoscope.tasks import control
from mnemoscope.tasks.control.registry import TABLE as ENVIRONMENTS
from mnemoscope.tasks.registry import TABLE


def test_table_is_what_the_files_register():
    found = {}
    for file in pkgutil.walk_packages(ms.tasks.__path__, "mnemoscope.tasks."):
        module = import_module(file.name)
        for name, thing in vars(module).items():
            own = isinstance(thing, type) and thing.__module__ == module.__name__ and "name" in vars(thing)
            if own and isinstance(thing.name, str) and thing.name:
                found[thing.name] = f"{file.name.removeprefix('mnemoscope.tasks.')}:{name}"
    environments = {name: place for name, place in found.items() if place.startswith("control.")}
    assert {name: place.removeprefix("control.") for name, place in environments.items()} == ENVIRONMENTS
    assert {name: place for name, place in found.items() if name not in environments} == TABLE


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_an_attribute_of_its_room(name):
    cls = control.get(name)
    assert getattr(control, cls.__name__) is cls
    assert cls.__name__ in dir(control)


def test_every_class_is_an_attribute_of_its_room():
    for name in TABLE:
        cls = ms.tasks.get(name)
        room = ms.tasks.relational if ".relational." in cls.__module__ else ms.tasks
        assert getattr(room, cls.__name__) is cls, name
        assert cls.__name__ in dir(room), name


def test_no_file_has_the_name_of_a_public_name():
    files = {file.name.rpartition(".")[2] for file in pkgutil.walk_packages(ms.tasks.__path__, "mnemoscope.tasks.")}
    assert files & {*dir(ms.tasks), *dir(ms.tasks.relational), *dir(control)} == {"control", "relational"}


def test_importing_tasks_loads_no_task():
    files = sorted({f"mnemoscope.tasks.{place.partition(':')[0]}" for place in TABLE.values()})
    code = f"import sys, mnemoscope.tasks; print([m for m in {files} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mnemoscope.tasks' has no attribute 'Nothing'"):
        _ = ms.tasks.Nothing
