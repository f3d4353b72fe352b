"""Language tools that judge nothing: sentences, language identification, clauses, thoughts."""
