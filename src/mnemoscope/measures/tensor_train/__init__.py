"""Ranks of tensor trains in exact arithmetic."""
