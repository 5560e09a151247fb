"""Profile of a network: what it remembers, measured within a minute, beside the established ones."""

from mnemoscope.profiles.profile import Profile, compare, profile, read_profile
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Estimate, Row, SectionRow
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, all_sections, section

__all__ = [
    "Axis",
    "Call",
    "Context",
    "Estimate",
    "Measurement",
    "Profile",
    "ProfileSection",
    "Quantity",
    "Row",
    "Scalar",
    "SectionRow",
    "all_sections",
    "compare",
    "profile",
    "read_profile",
    "section",
]
