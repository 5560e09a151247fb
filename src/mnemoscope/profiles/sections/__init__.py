"""The parts of a profile, one file each. Every file here is imported when parts are asked for."""
