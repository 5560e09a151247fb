"""Parity: whether the forms of a network, or two implementations of it, are one function."""
