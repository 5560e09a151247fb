"""Start-End separation rank: exact ranks, saturation, and the conjectured bounds."""
