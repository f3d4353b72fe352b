"""genprobe: what multilingual instruct models say about stereotypes, read and counted."""

__version__ = "0.1.0"
