"""Machinery of studies: what every study shares, so that one is a small declaration."""

from mnemoscope.studies.machinery import control, kinds, trainings
from mnemoscope.studies.machinery.costs import Cost, Estimates, time_on
from mnemoscope.studies.machinery.displays import BarsOf, CurvesOf, HeatMapOf, TableOf
from mnemoscope.studies.machinery.execution import EXECUTORS, collected, execute, executor
from mnemoscope.studies.machinery.gallery import draw_gallery, facts_of, read_result, save_result
from mnemoscope.studies.machinery.page import study_page
from mnemoscope.studies.machinery.rules import NO_VERDICT, UNDECIDED, VERDICTS, First, Holds, Ordered, Part, Ranked
from mnemoscope.studies.machinery.search import Axis, Choice, best_point, edges, grid_points, random_points, search_plan
from mnemoscope.studies.machinery.sharding import Share
from mnemoscope.studies.machinery.study import SCALES, STUDIES, Finding, Outcome, Row, RunSpec, Study, declared, grid

__all__ = [
    "EXECUTORS",
    "NO_VERDICT",
    "SCALES",
    "STUDIES",
    "UNDECIDED",
    "VERDICTS",
    "Axis",
    "BarsOf",
    "Choice",
    "Cost",
    "CurvesOf",
    "Estimates",
    "Finding",
    "First",
    "HeatMapOf",
    "Holds",
    "Ordered",
    "Outcome",
    "Part",
    "Ranked",
    "Row",
    "RunSpec",
    "Share",
    "Study",
    "TableOf",
    "best_point",
    "collected",
    "control",
    "declared",
    "draw_gallery",
    "edges",
    "execute",
    "executor",
    "facts_of",
    "grid",
    "grid_points",
    "kinds",
    "random_points",
    "read_result",
    "save_result",
    "search_plan",
    "study_page",
    "time_on",
    "trainings",
]
