"""Loops over time, each with its plain twin beside it."""
