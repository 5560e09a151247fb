"""Studies: tables, figures and theorems of the documents, declared in a file each and run again.

The machinery that they share is in `machinery`; every file beside it is a study, found by its name.
"""

from mnemoscope.studies.machinery import SCALES, STUDIES, VERDICTS, Finding, Outcome, RunSpec, Study

__all__ = ["SCALES", "STUDIES", "VERDICTS", "Finding", "Outcome", "RunSpec", "Study"]
