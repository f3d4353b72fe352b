"""Scores as text: terminal tables, CSV, JSON, LaTeX, and what a notebook shows."""
