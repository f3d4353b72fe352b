"""Scores of runs, comparisons of runs, tests, and published tables."""
