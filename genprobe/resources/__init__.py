"""Languages, packs, model aliases: read from data files, checked, found by name."""
