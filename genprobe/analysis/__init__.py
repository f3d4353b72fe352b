"""Scores, and runs set beside each other: comparisons, tests, published tables."""
