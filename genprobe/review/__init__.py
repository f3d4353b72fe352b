"""People read a sample: draw it, take it back, agreement, correction."""
