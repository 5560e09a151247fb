"""The package as a whole: what its documents promise, its metadata, and what importing it costs."""

import ast
import doctest
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mnemoscope

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


DISTRIBUTIONS = {
    "PIL": "pillow",
    "docstring_parser": "docstring-parser",
    "flint": "python-flint",
    "vl_convert": "vl-convert-python",
}
"""Packages that are imported under another name than they are installed by."""


def blocks(text, language):
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def mnemoscope_command(*arguments, columns=None):
    """Run the command line as a user does."""
    width = {} if columns is None else {"COLUMNS": str(columns)}
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | width
    code = "from mnemoscope.cli.main import app; app(prog_name='mnemoscope')"
    return run(sys.executable, "-c", code, *arguments, env=environment)


# Documents ------------------------------------------------------------------------------------------


def test_readme_python():
    source = "\n".join(block for block in blocks(README, "python") if ">>>" in block)
    assert source.count(">>>") > 10
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", "README.md", 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 10
    assert results.failed == 0


def test_readme_capacity_in_two_lines():
    """The lines as they stand, but for trainings that are cut short."""
    (source,) = [block for block in blocks(README, "python") if ">>>" not in block]
    *first, last = ast.parse(source).body
    names = {"ms": mnemoscope, "short": {"iterations": 2, "test_size": 16, "validation_size": 16}}
    call = last.value.func.value
    assert ast.unparse(last.value.func).endswith(".plot")
    assert ast.unparse(call) == "ms.capacity(network, 'copying')"
    call.keywords.append(ast.keyword(None, ast.Name("short", ast.Load())))
    exec(compile(ast.Module(first, []), "README.md", "exec"), names)
    chart = eval(compile(ast.fix_missing_locations(ast.Expression(last.value)), "README.md", "eval"), names)
    assert "delay" in str(chart.to_dict())


def console_examples():
    (console,) = blocks(README, "console")
    return [tuple(part.split("\n", 1)) for part in re.split(r"^\$ ", console, flags=re.MULTILINE) if part]


@pytest.mark.parametrize(("command", "shown"), console_examples())
def test_readme_output_is_what_the_command_prints(command, shown):
    name, *arguments = command.split()
    assert name == "mnemoscope"
    printed = [line.rstrip() for line in mnemoscope_command(*arguments, columns=80).stdout.splitlines()]
    pieces = [piece.strip("\n").splitlines() for piece in shown.split("...\n")]
    start = 0
    for piece in filter(None, pieces):
        places = [i for i in range(start, len(printed)) if printed[i : i + len(piece)] == piece]
        assert places, f"not in the output of `{command}`, or not in this order:\n" + "\n".join(piece)
        start = places[0] + len(piece)


def test_readme_has_exactly_two_commands_of_its_own_and_they_can_be_typed():
    commands = [block.strip() for block in blocks(README, "sh") if block.startswith("./")]
    assert commands == ["./scripts/try", "./scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)
    assert "scripts/test" in (ROOT / ".ci/run").read_text()


def test_readme_counts_its_networks():
    assert f"{len(mnemoscope.nn.names())} networks" in README


def test_links_lead_somewhere():
    for document in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / document).read_text()):
            assert (ROOT / target).exists(), f"{document} links to {target}"


@pytest.mark.parametrize("script", ["scripts/try", "scripts/test", "scripts/nightly", "scripts/environment.sh"])
def test_scripts_are_plain_shell(script):
    assert run("sh", "-n", str(ROOT / script)).returncode == 0


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The network of CONTRIBUTING.md as a file."""
    (code,) = blocks((ROOT / "CONTRIBUTING.md").read_text(), "python")
    path = tmp_path_factory.mktemp("contributing") / "leaky.py"
    path.write_text(code)
    return path


def test_contributing_takes_few_steps_and_80_lines(example):
    steps = re.findall(r"^\d+\. ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(steps) <= 13
    assert len(example.read_text().splitlines()) < 80


def test_contributing_example_keeps_the_contract(example):
    done = mnemoscope_command("check", f"{example}:LeakyRNN")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^LeakyRNN: \d{2,} checks passed, ", done.stdout, re.MULTILINE)


def test_contributing_example_is_shown(example):
    shown = mnemoscope_command("show", f"{example}:LeakyRNN").stdout
    assert "leaky-rnn (first order, recurrent)" in shown
    assert "leak: float = 0.5\n      a, above 0 and at most 1, which is Elman's network." in shown
    assert "echo state networks with leaky-integrator neurons" in " ".join(shown.split())


def test_contributing_example_with_leak_one_is_elmans_network(example):
    code = f"""
import torch, mnemoscope as ms
leaky = ms.nn.get({f"{example}:LeakyRNN"!r})(3, 5, leak=1)
elman = ms.nn.RNN(3, 5)
elman.load_state_dict(leaky.state_dict())
x = torch.randn(7, 2, 3)
torch.testing.assert_close(leaky(x), elman(x))
print("equal")
"""
    assert run(sys.executable, "-c", code).stdout == "equal\n"


# Metadata -------------------------------------------------------------------------------------------


def test_one_version():
    assert importlib.metadata.version("mnemoscope") == mnemoscope.__version__
    assert f"\nversion: {mnemoscope.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {mnemoscope.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_installed_entry_points():
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="mnemoscope")
    assert command.load().info.cls.__name__ == "Commands"
    (plugin,) = importlib.metadata.entry_points(group="pytest11", name="mnemoscope")
    assert callable(plugin.load().pytest_addoption)


def test_typed():
    assert (Path(mnemoscope.__file__).parent / "py.typed").exists()


def test_every_dependency_has_bounds_and_is_imported():
    declared = {}
    extras = [line for name in ("control", "ray") for line in PROJECT["optional-dependencies"][name]]
    for line in (*PROJECT["dependencies"], *extras):
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", line).groups()
        assert ">=" in bounds, line
        assert "<" in bounds.replace(">=", ""), line
        declared[name] = bounds
    assert {DISTRIBUTIONS.get(name, name) for name in imported()} == set(declared)


def imported():
    """Return the top-level names that the package imports and that are not Python's own or its own."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.partition(".")[0])
    # pytest is there whenever the plugin that imports it is loaded: by pytest.
    return found - set(sys.stdlib_module_names) - {"mnemoscope", "pytest"}


def test_constraints_lie_within_the_bounds():
    (pinned,) = re.findall(r"^torch==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    (bounds,) = [line for line in PROJECT["dependencies"] if line.startswith("torch")]
    low, high = re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", bounds).groups()

    def number(text):
        return tuple(int(part) for part in text.split("."))

    assert number(low) <= number(pinned) < number(high)


# Importing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["import mnemoscope", "import mnemoscope.cli.main", "import mnemoscope.testing"])
def test_importing_costs_no_torch(statement):
    done = run(sys.executable, "-c", f"{statement}, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_the_networks_cost_little_beyond_torch():
    # torch.compiler's decorators import the compiler, which takes longer than all of torch.
    done = run(sys.executable, "-c", "import mnemoscope.nn, sys; print('torch._dynamo' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_public_names_are_there():
    assert set(mnemoscope.__all__) <= set(dir(mnemoscope))
    for name in mnemoscope.__all__:
        assert getattr(mnemoscope, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'mnemoscope' has no attribute 'nets'"):
        _ = mnemoscope.nets
