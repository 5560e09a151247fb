"""The main job: what a network remembers, measured within a minute, beside the established ones."""

from mnemoscope.profiles.profile import Profile, compare, profile
from mnemoscope.profiles.section import Context, Part, PartResult, Scalar, part, parts

__all__ = ["Context", "Part", "PartResult", "Profile", "Scalar", "compare", "part", "parts", "profile"]
