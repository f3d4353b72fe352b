"""The run folder: its spec, its records, and its verification."""
