"""The run folder: its spec, its records, whether it is whole."""
