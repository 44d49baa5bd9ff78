"""`python -m bench.soak.answering STATE_DIR`: a person in another process, until its stdin is closed."""

from __future__ import annotations

import select
import sys

from skillkit import RequestClosedError, World

LOOK_SECONDS = 0.02


def main() -> None:
    with World(sys.argv[1]) as world:
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            for request in world.pending():
                option = "no" if "scripts/no.sh" in request.title else "yes_once"
                try:
                    world.answer(request.id, option, "soak")
                except RequestClosedError:
                    continue  # whoever asked has gone, or the question was shared


if __name__ == "__main__":
    main()
