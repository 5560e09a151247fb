"""State tracking: which groups the transitions of a network rule out, and which histories it confuses."""
