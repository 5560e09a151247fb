"""Objects that a user names: file.py:Name and module:Name."""

import dataclasses

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location, load_object


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "my cells.py"
    path.write_text(
        "from __future__ import annotations\n"
        "import dataclasses\n"
        "from collections import OrderedDict\n"
        "@dataclasses.dataclass\n"
        "class Settings:\n"
        "    size: int = 3\n"
        "class MyRNN: pass\n"
        "class _Hidden: pass\n"
        "def build(): return MyRNN()\n"
    )
    return path


def message(location):
    with pytest.raises(UserError) as caught:
        load_object(str(location))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("a.py:Net", True), ("a.py", True), ("package.module:Net", True), ("nnrnn", False), ("h-detach-lstm", False)],
)
def test_is_location(text, answer):
    assert is_location(text) is answer


def test_a_class_a_function_and_a_dataclass_of_a_file(cells):
    assert load_object(f"{cells}:MyRNN").__name__ == "MyRNN"
    assert type(load_object(f"{cells}:build")()).__name__ == "MyRNN"
    assert dataclasses.asdict(load_object(f"{cells}:Settings")()) == {"size": 3}


def test_an_object_of_a_module():
    assert load_object("dataclasses:dataclass") is dataclasses.dataclass


def test_a_name_that_is_missing(cells):
    assert message(f"{cells}:MyRN") == f"{cells} has no 'MyRN'; it defines MyRNN, Settings; did you mean 'MyRNN'?"
    assert message(f"{cells}:") == f"name the class too, as in {cells}:MyRNN; it defines MyRNN, Settings"
    assert message(cells) == f"name the class too, as in {cells}:MyRNN; it defines MyRNN, Settings"


def test_a_file_without_classes(tmp_path):
    (tmp_path / "empty.py").write_text("")
    path = tmp_path / "empty.py"
    assert message(path) == f"name the class too, as in {path}:MyRNN; it defines no class"


def test_a_file_that_is_missing(tmp_path):
    assert message(f"{tmp_path}/no.py:Net") == f"there is no file '{tmp_path}/no.py'"
    assert message(f"{tmp_path}:Net").startswith(f"the module '{tmp_path}' cannot be imported: ")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = = 1", "SyntaxError: invalid syntax (line 1)"),
        ("\n\n  y = 1", "IndentationError: unexpected indent (line 3)"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("import no_such_package_anywhere", "ModuleNotFoundError: No module named 'no_such_package_anywhere'"),
    ],
)
def test_a_file_that_cannot_be_run(tmp_path, code, said):
    path = tmp_path / "bad.py"
    path.write_text(code)
    assert message(f"{path}:Net") == f"{path} cannot be run: {said}"


def test_a_module_that_cannot_be_imported():
    assert message("no_such_package_anywhere:Net") == (
        "the module 'no_such_package_anywhere' cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_package_anywhere'"
    )


def test_two_files_of_one_name_do_not_meet(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.py").write_text(f"class Net: home = {folder!r}\n")
    assert load_object(f"{tmp_path}/a/net.py:Net").home == "a"
    assert load_object(f"{tmp_path}/b/net.py:Net").home == "b"
