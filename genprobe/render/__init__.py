"""Write scores as text: terminal tables, CSV, JSON, LaTeX, and HTML for notebooks."""
