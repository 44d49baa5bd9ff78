"""What a worker does with the id of a run: claim, decide again, run, end; and the threads that keep watch beside it."""
