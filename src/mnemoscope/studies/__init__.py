"""Tables and figures of the papers: declared once, run again."""

from mnemoscope.studies import depth_fig_6, trainings, ziv_theorem_1
from mnemoscope.studies.execution import EXECUTORS, collected, execute, executor, planned
from mnemoscope.studies.page import study_page
from mnemoscope.studies.study import SCALES, STUDIES, VERDICTS, Finding, Outcome, Part, RunSpec, Study, study

__all__ = [
    "EXECUTORS",
    "SCALES",
    "STUDIES",
    "VERDICTS",
    "Finding",
    "Outcome",
    "Part",
    "RunSpec",
    "Study",
    "collected",
    "depth_fig_6",
    "execute",
    "executor",
    "planned",
    "study",
    "study_page",
    "trainings",
    "ziv_theorem_1",
]
