"""What can be measured, and how a model is asked and its replies are judged."""
