"""Commands about skills: see them, begin one, get them from elsewhere, sign them, install what they need."""
