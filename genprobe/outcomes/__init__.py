"""Make tables of outcomes: a statement, request, response and its judgments become one row."""
