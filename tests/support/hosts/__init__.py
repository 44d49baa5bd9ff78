"""Real agent hosts in throw-away homes, a scripted model on loopback, and what both showed."""
