"""Language tools below the judges: sentences, language identification, clauses, thoughts."""
