"""Ways to ask a person."""
