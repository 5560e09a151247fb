"""Capacity of a network: the hardest level of a task that it still learns."""
