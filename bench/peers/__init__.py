"""The same scripts through skillkit, through other runtimes of skills, and through plain `subprocess.run`."""
