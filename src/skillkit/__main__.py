"""`python -m skillkit` is the command `skillkit`."""

from __future__ import annotations

from skillkit.cli.main import main

if __name__ == "__main__":
    main()
