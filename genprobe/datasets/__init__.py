"""What is asked about: statements, templates, pairs, choices; loaded and checked."""
