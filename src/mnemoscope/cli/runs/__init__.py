"""Command ``runs``: what was run, one run in full, several side by side, cleaning up."""
