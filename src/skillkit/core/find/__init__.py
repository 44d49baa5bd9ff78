"""Folders -> skills: roots, walk, reading, plugins, the index of names, strict validation."""
