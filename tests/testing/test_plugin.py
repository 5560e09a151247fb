"""The pytest plugin, as another repository uses it."""

import subprocess
import sys

import pytest

import mnemoscope as ms

CELLS = """
import mnemoscope as ms

class Good(ms.nn.RNN):
    pass

class Forgetful(ms.nn.RNN):
    def forward(self, input, hx=None):
        return super().forward(input)

def small():
    return ms.nn.GRU(3, 4)
"""


_CHECKS = ms.testing.CHECKS
for _name in ms.nn.names():
    ms.nn.get(_name)  # what a run within this process imports first is forgotten after it, and cannot register twice


@pytest.fixture
def cells(pytester):
    pytester.makepyfile(cells=CELLS)
    return pytester


def test_each_check_of_a_network_is_a_test(cells):
    result = cells.runpytest("--mnemoscope", "cells.py:Good", "-v", "-k", "check_batched or check_unbatched")
    result.stdout.fnmatch_lines(
        ["mnemoscope::Good::check_batched PASSED*", "mnemoscope::Good::check_unbatched PASSED*", "*2 passed*"]
    )
    assert result.ret == pytest.ExitCode.OK


PLAIN = """
import torch

class Cell(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.cell = torch.nn.GRUCell(input_size, hidden_size)

    def forward(self, x, h):
        return self.cell(x, h)
"""


def test_a_plain_cell_is_green_on_the_level_of_modules(pytester):
    pytester.makepyfile(plain=PLAIN)
    result = pytester.runpytest("--mnemoscope", "plain.py:Cell", "--mnemoscope-level", "module")
    result.assert_outcomes(passed=16)
    pytester.makeini("[pytest]\nmnemoscope_networks = plain.py:Cell\nmnemoscope_level = module\n")
    result = pytester.runpytest("-k", "check_step or check_reading")
    result.assert_outcomes(passed=2, deselected=14)
    wrong = pytester.runpytest("-o", "mnemoscope_level=all")
    wrong.stdout.fnmatch_lines(["*level must be 'contract' or 'module', got 'all'*"])


def test_a_failure_is_its_sentence_without_a_traceback(cells):
    result = cells.runpytest("--mnemoscope", "cells.py:Forgetful", "-k", "check_chunked")
    result.stdout.fnmatch_lines(["Forgetful fails check_chunked: start from the hx that comes in*", "*1 failed*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*raise CheckFailed*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_traceback_can_be_asked_for(cells):
    result = cells.runpytest("--mnemoscope", "cells.py:Forgetful", "-k", "check_chunked", "--tb=long")
    result.stdout.fnmatch_lines(["*raise CheckFailed*"])


def test_a_skipped_check_shows_its_reason(cells):
    result = cells.runpytest("--mnemoscope", "cells.py:small", "-rs", "-k", "check_layers")
    result.stdout.fnmatch_lines(["SKIPPED*the factory takes no arguments, so its sizes and options cannot be chosen"])
    result.assert_outcomes(skipped=1)


def test_the_ini_file_lists_networks_and_checks_to_leave_out(cells):
    cells.makeini(
        """
        [pytest]
        mnemoscope_networks =
            cells.py:Good
            gru
        mnemoscope_skip =
            check_compile
        """
    )
    elsewhere = cells.mkdir("elsewhere")
    result = cells.runpytest("--collect-only", "-q", "-c", str(cells.path / "tox.ini"), str(elsewhere))
    result.stdout.fnmatch_lines(["mnemoscope::Good::check_batched", "mnemoscope::gru::check_batched"])
    result.stdout.no_fnmatch_line("*check_compile*")


def test_networks_stand_beside_ordinary_tests(cells):
    cells.makepyfile(test_own="def test_own(): pass")
    result = cells.runpytest("--mnemoscope", "rnn", "-k", "test_own or check_batched")
    result.assert_outcomes(passed=2)


def test_networks_of_one_file_are_loaded_together(cells):
    both = ["--mnemoscope", "cells.py:Good", "--mnemoscope", "cells.py:small"]
    result = cells.runpytest(*both, "-k", "check_pickle")
    result.assert_outcomes(passed=2)


def test_networks_of_one_name_are_told_apart(cells):
    cells.makepyfile(others=CELLS)
    result = cells.runpytest("--mnemoscope", "cells.py:Good", "--mnemoscope", "others.py:Good", "--collect-only", "-q")
    result.stdout.fnmatch_lines(
        ["mnemoscope::*cells.py:Good::check_batched", "mnemoscope::*others.py:Good::check_batched"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mnemoscope", "nowhere.py:Good"], "there is no file *nowhere.py*"),
        (["--mnemoscope", "cells.py:God"], "*has no 'God'*did you mean 'Good'?"),
        (["--mnemoscope", "rn"], "there is no network named 'rn'; did you mean 'rnn'?"),
        (["--mnemoscope", "rnn", "--mnemoscope-skip", "check_pack"], "there is no check 'check_pack'*"),
        (["--mnemoscope", "cells.py:CELL"], "factory must be a class or a function*"),
    ],
)
def test_a_mistake_in_a_name_is_one_line(cells, arguments, message):
    cells.makepyfile(cells=CELLS + "\nCELL = 3\n")
    result = cells.runpytest(*arguments)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_nothing_is_collected_or_imported_unless_a_network_is_named(cells):
    cells.makepyfile(test_own="def test_own(): pass")
    result = cells.runpytest("-v")
    result.assert_outcomes(passed=1)
    code = "import sys, mnemoscope.testing.plugin; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
