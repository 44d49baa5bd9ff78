"""`make soak`: everything that can go wrong with scripts, at once and for long; then nothing may be left."""
