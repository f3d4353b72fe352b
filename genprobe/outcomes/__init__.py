"""The one join: statement, request, response and judgments become a row to count."""
