"""Gradients through attention: paths by the number of states they pass."""
