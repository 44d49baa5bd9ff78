"""The flow: find, resolve, decide, run, record. Nothing here knows who is asking."""
