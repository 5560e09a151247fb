"""The command line: each command calls one function of the other rooms and prints its result."""
