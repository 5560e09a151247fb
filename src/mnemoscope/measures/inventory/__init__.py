"""Inventory of what a network carries from step to step."""
