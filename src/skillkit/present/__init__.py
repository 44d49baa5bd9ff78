"""Values -> text and structures that people, models and programs read."""
