"""Make data sets: from people's answers to pairs with which one can measure.

Each step is one module; it reads a table and writes a table (`tables`) whose rows have an `id` and
a `history`, so any step can be replaced by another tool.
"""
