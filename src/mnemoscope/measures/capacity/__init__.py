"""Memory capacity of linear and nonlinear networks."""
