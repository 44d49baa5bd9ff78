"""One program per runtime: each runs in that runtime's own environment and knows nothing of the others."""
