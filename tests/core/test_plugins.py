"""Objects that a user names: file.py:Name and module:Name."""

import dataclasses
import sys

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.core.loading import notes_of
from mnemoscope.core.plugins import is_location, load_object

OTHER_PYTHON = f"; it may be written for another Python than this, {sys.version_info[0]}.{sys.version_info[1]}"
OLD_TORCH = (
    "ModuleNotFoundError: No module named 'torch._six' (bad.py, line 1); it was written for another version of torch"
)


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
        ("x = = 1", f"SyntaxError: invalid syntax (line 1){OTHER_PYTHON}"),
        ("\n\n  y = 1", "IndentationError: unexpected indent (line 3)"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines (bad.py, line 1)"),
        ("import torch._six", OLD_TORCH),
        ("import sys\nsys.exit(3)", "SystemExit: 3 (bad.py, line 2)"),
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


def test_each_file_finds_its_own_neighbours_in_any_order(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "neighbour.py").write_text(f"HOME = {folder!r}\n")
        for name in ("first", "second"):
            (tmp_path / folder / f"{name}.py").write_text("from neighbour import HOME\nclass Net: home = HOME\n")
    for place in ("a/first", "b/first", "b/second", "a/second"):
        assert load_object(f"{tmp_path}/{place}.py:Net").home == place[0]


def repository(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


LAYOUTS = {
    "a file beside it": {"net.py": "from helpers import SIZE\nclass Net: size = SIZE\n", "helpers.py": "SIZE = 5\n"},
    "a relative import": {
        "pkg/__init__.py": "",
        "pkg/net.py": "from .helpers import SIZE\nclass Net: size = SIZE\n",
        "pkg/helpers.py": "SIZE = 5\n",
    },
    "a relative import without an __init__": {
        "pkg/net.py": "from .helpers import SIZE\nclass Net: size = SIZE\n",
        "pkg/helpers.py": "SIZE = 5\n",
    },
    "two folders up": {
        "pkg/__init__.py": "",
        "pkg/models/__init__.py": "",
        "pkg/models/net.py": "from ..ops.helpers import SIZE\nclass Net: size = SIZE\n",
        "pkg/ops/__init__.py": "",
        "pkg/ops/helpers.py": "SIZE = 5\n",
    },
    "the repository's root": {
        "setup.py": "raise SystemExit('never run')",
        "models/net.py": "from utils.helpers import SIZE\nclass Net: size = SIZE\n",
        "utils/helpers.py": "SIZE = 5\n",
    },
    "its own package by name": {
        "pyproject.toml": "",
        "src/mine/__init__.py": "",
        "src/mine/net.py": "from mine.helpers import SIZE\nclass Net: size = SIZE\n",
        "src/mine/helpers.py": "SIZE = 5\n",
    },
    "an __init__ that fails": {
        "pkg/__init__.py": "raise RuntimeError('no GPU')",
        "pkg/net.py": "from .helpers import SIZE\nclass Net: size = SIZE\n",
        "pkg/helpers.py": "SIZE = 5\n",
    },
    "what its __init__ defines": {
        "pkg/__init__.py": "SIZE = 5\n",
        "pkg/net.py": "from . import SIZE\nclass Net: size = SIZE\n",
    },
    "a package that is not installed": {
        "net.py": "import no_such_package_anywhere.sub as n\n"
        "from no_such_package_anywhere import jit, Base\n"
        "@jit\ndef double(x): return 2 * x\n"
        "@n.jit(fast=True)\nclass Net: size = 5\n"
    },
    "one that it can do without": {
        "net.py": "try:\n    import no_such_package_at_all\nexcept ImportError:\n    no_such_package_at_all = None\n"
        "class Net: size = 5 if no_such_package_at_all is None else 0\n"
    },
    "arguments of its own": {
        "net.py": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--size', default=5)\n"
        "class Net: size = parser.parse_args().size\nprint('hello')\n"
    },
    "an import when it is called": {
        "net.py": "class Net:\n    @property\n    def size(self):\n        from late import SIZE\n        return SIZE\n"
        "Net = Net()\n",
        "late.py": "SIZE = 5\n",
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_imports_as_they_are_found_in_repositories(tmp_path, layout, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["mnemoscope", "profile", "--hidden", "32"])
    repository(tmp_path, LAYOUTS[layout])
    (net,) = tmp_path.rglob("net.py")
    assert load_object(f"{net}:Net").size == 5
    assert capsys.readouterr().out == "", "what a stranger prints stays out of the standard output"


def test_each_repository_has_its_own_utils(tmp_path):
    for home in ("a", "b"):
        repository(
            tmp_path / home, {"net.py": "import utils\nclass Net: home = utils.HOME\n", "utils.py": f"HOME = {home!r}"}
        )
    assert load_object(f"{tmp_path}/a/net.py:Net").home == "a"
    assert load_object(f"{tmp_path}/b/net.py:Net").home == "b"


def test_a_module_below_the_current_folder(tmp_path, monkeypatch):
    repository(tmp_path, {"their_pkg/__init__.py": "", "their_pkg/net.py": "class Net: size = 5\n"})
    monkeypatch.chdir(tmp_path)
    assert load_object("their_pkg.net:Net").size == 5


def test_a_stand_in_says_what_to_install_when_it_is_used(tmp_path):
    code = "import no_such_logger\nclass Net:\n    def __init__(self): no_such_logger.init(project='x')\n"
    net = load_object(f"{repository(tmp_path, {'net.py': code})}/net.py:Net")
    with pytest.raises(UserError, match="no_such_logger.init is used, and .* pip install no-such-logger"):
        net()
    assert notes_of(net.__module__) == ("no_such_logger cannot be imported here, and an empty module stands in for it",)


def test_a_file_that_never_returns(tmp_path, monkeypatch):
    monkeypatch.setattr("mnemoscope.core.loading._SECONDS", 0.2)
    code = "while True: pass\n"
    assert "did not return within 0.2 seconds" in message(f"{repository(tmp_path, {'net.py': code})}/net.py:Net")
