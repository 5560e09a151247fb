"""A file beside the script, as scripts import them."""

from models.parts import Gate

__all__ = ["Gate"]
