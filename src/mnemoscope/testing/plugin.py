"""The pytest plugin: ``pytest --mnemoscope cells.py:MyRNN`` makes one test of every check of a network.

Nothing but pytest is imported here until a network is named, for pytest imports this file in every run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location, load_object

if TYPE_CHECKING:
    from mnemoscope.testing.checking import Check
    from mnemoscope.testing.subject import Subject

__all__ = ["pytest_addoption", "pytest_make_collect_report"]

SENTENCE_STYLES = ("auto", "line", "no")
"""Values of --tb with which a failure is its sentence alone; the others add the traceback."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line and of the ini file."""
    group = parser.getgroup("mnemoscope", "conformance checks of recurrent networks")
    group.addoption(
        "--mnemoscope",
        action="append",
        default=[],
        metavar="NETWORK",
        help="check a network: file.py:Name or package.module:Name (a class or a function that builds it; this runs "
        "the file's code), or a name of Mnemoscope's; may be repeated",
    )
    group.addoption(
        "--mnemoscope-skip", action="append", default=[], metavar="CHECK", help="leave a check out; may be repeated"
    )
    group.addoption(
        "--mnemoscope-level",
        choices=("contract", "module"),
        default=None,
        help="contract (default): the whole contract; module: what a plain module can keep, however it is called",
    )
    parser.addini("mnemoscope_level", "contract or module, as --mnemoscope-level names them", default="contract")
    parser.addini("mnemoscope_networks", "networks to check in every run, as --mnemoscope names them", type="linelist")
    parser.addini("mnemoscope_skip", "checks to leave out, as --mnemoscope-skip names them", type="linelist")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the networks to what the session collects from the files."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed and _named(collector.config):
        report.result.append(_Networks.from_parent(collector, name="mnemoscope", nodeid="mnemoscope"))
    return report


def _named(config: pytest.Config) -> list[str]:
    """Return all networks that the command line and the ini file name, each once, files with their whole path."""
    typed = [_absolute(name, config.invocation_params.dir) for name in config.getoption("--mnemoscope")]
    home = config.inipath.parent if config.inipath else config.rootpath
    listed = [_absolute(name, home) for name in config.getini("mnemoscope_networks")]
    return list(dict.fromkeys(typed + listed))


def _absolute(name: str, folder: Path) -> str:
    where, colon, attribute = name.rpartition(":")
    return f"{folder / where}{colon}{attribute}" if where.endswith(".py") else name


class _Networks(pytest.Collector):
    """All networks that are to be checked."""

    def collect(self) -> Iterator[pytest.Collector]:
        names = _named(self.config)
        shorts = [name.rpartition(":")[2] for name in names]
        for name, short in zip(names, shorts, strict=True):
            node = _Network.from_parent(self, name=short if shorts.count(short) == 1 else name)
            node.network = name
            yield node


class _Network(pytest.Collector):
    """One network."""

    network: str

    def collect(self) -> Iterator[pytest.Item]:
        from mnemoscope.testing.suite import checks_of, require_known

        skipped = {*self.config.getoption("--mnemoscope-skip"), *self.config.getini("mnemoscope_skip")}
        try:
            require_known(skipped)
            level = self.config.getoption("--mnemoscope-level") or self.config.getini("mnemoscope_level")
            subject, checks = checks_of(_factory(self.network), level)
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for check in checks:
            if check.__name__ not in skipped:
                item = _CheckItem.from_parent(self, name=check.__name__)
                item.check, item.subject = check, subject
                yield item


class _CheckItem(pytest.Item):
    """One check of one network."""

    check: Check
    subject: Subject

    def runtest(self) -> None:
        from mnemoscope.testing.report import Skipped

        try:
            self.check(self.subject)
        except Skipped as reason:
            pytest.skip(str(reason))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from mnemoscope.testing.report import CheckFailed

        if isinstance(excinfo.value, CheckFailed) and self.config.getoption("tbstyle") in SENTENCE_STYLES:
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.nodeid


def _factory(name: str) -> Any:
    if is_location(name):
        return load_object(name)
    from mnemoscope.nn.registry import get

    return get(name)
