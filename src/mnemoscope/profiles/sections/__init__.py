"""Sections of a profile, one file each; every file here is imported when sections are asked for."""
