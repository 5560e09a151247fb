"""Closed forms, bounds and constructions: plain functions of numbers and arrays, one file per subject."""
