"""Cost of a network: parameters, state, multiply-adds, seconds and training memory."""
