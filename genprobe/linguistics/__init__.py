"""What is known of languages as such: sentences, and what else is no judgment."""
