"""Load and check statements, templates, pairs and choices."""
