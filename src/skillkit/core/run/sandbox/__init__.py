"""Walls around a process: what a run may reach -> the command line that keeps it there."""
