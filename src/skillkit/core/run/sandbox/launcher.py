"""The small program that stands between the runner and a script: `launcher.py INSTRUCTIONS FILTER -- PROGRAM...`.

Run by its path with `python -I -S -X utf8`. The first two arguments are numbers of readable descriptors.
"""

import sys

if __name__ == "__main__":
    # Loaded like this, its parts are compiled once, not for each run, and bring nothing else of skillkit along.
    sys.path.append(__file__.rsplit("/", 2)[0])
    from sandbox.keeper import main  # type: ignore[import-not-found]  # the name it has without skillkit

    main()
