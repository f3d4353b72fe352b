"""Data sets made: from people's words to pairs that one can measure with.

Each step is one module and takes a table to a table (`tables`), every row with an `id` and a
`history`, so that any step can be done elsewhere.
"""
