"""Make data sets: from people's answers to pairs of sentences that can be put to a model.

Each step is one module. It reads a table and writes a table (see `tables`) whose rows have an `id`
and a `history`, so any step can be replaced by another tool.
"""
