"""Instruments: each takes a network or its matrices and returns a result. Nothing is trained."""

from mnemoscope.measures.registry import MEASURES, Measure, get, measure, names

__all__ = ["MEASURES", "Measure", "get", "measure", "names"]
