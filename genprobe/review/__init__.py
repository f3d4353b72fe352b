"""Review by people: draw a sample, collect answers, compute agreement, correct rates."""
