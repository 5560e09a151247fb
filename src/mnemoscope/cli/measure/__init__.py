"""Command ``measure``: one command for every measure, and one for all that apply to a network."""
