"""What theory says of one network: a table of theorems, each with what it applies to and what it says in numbers.

Every file here is imported when the table is asked for. A network that comes later brings its theorems by a file of its
own with functions under `theorem`.
"""

from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import TOPICS, Finding, Theorem, says, theorem, theorems

__all__ = ["TOPICS", "Finding", "Subject", "Theorem", "says", "theorem", "theorems"]
