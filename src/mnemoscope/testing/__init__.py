"""Public checks for anybody's network: `check_network`, and each check on its own.

>>> import mnemoscope as ms
>>> report = ms.testing.check_network(ms.nn.RNN, skip=("check_compile",))
>>> report.skipped["check_compile"]
'the caller asked for it'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemoscope.testing.report import CheckFailed, Report, Skipped
    from mnemoscope.testing.stateless import STATELESS_CHECKS
    from mnemoscope.testing.subject import Subject
    from mnemoscope.testing.suite import CHECKS, check_network

__all__ = ["CHECKS", "STATELESS_CHECKS", "CheckFailed", "Report", "Skipped", "Subject", "check_network"]

_HOMES = {
    "CHECKS": "suite",
    "STATELESS_CHECKS": "stateless",
    "CheckFailed": "report",
    "Report": "report",
    "Skipped": "report",
    "Subject": "subject",
    "check_network": "suite",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: pytest imports this package with the plugin, and must not pay for torch.
    if name in _HOMES:
        return getattr(importlib.import_module(f"mnemoscope.testing.{_HOMES[name]}"), name)
    if name.startswith("check_"):
        for home, table in (("suite", "CHECKS"), ("stateless", "STATELESS_CHECKS")):
            for check in getattr(importlib.import_module(f"mnemoscope.testing.{home}"), table):
                if check.__name__ == name:
                    return check
    raise AttributeError(f"module 'mnemoscope.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
