"""Measures skillkit against the plain way of doing the same work, interleaved in one run."""
