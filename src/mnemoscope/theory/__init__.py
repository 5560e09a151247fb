"""Closed forms, bounds and constructions: plain functions of numbers and arrays."""

from mnemoscope.theory.henaff_copy import HenaffCopy, henaff_copy

__all__ = ["HenaffCopy", "henaff_copy"]
