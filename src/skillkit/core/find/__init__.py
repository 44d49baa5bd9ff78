"""Folders -> skills: roots, plugins, walk, reading, the index of names, strict validation."""
