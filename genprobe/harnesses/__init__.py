"""genprobe inside other harnesses: a module for each, which only the harness and `peers` import."""
