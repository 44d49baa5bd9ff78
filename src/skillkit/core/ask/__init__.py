"""A run that needs a person's word -> the question they are shown, and the answer that holds for it."""
