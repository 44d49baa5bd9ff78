"""The beginning of a mark -> every process that carries it killed; run by the keeper of a program that was killed."""

import os
import signal
import sys
import time
from contextlib import suppress

QUIET_LOOKS = 5  # in a row that find nobody
PAUSE_SECONDS = 0.02
GIVE_UP_SECONDS = 10.0


def kill_marked(mark: bytes) -> bool:
    """Whether anybody was found, and with them all of a group that one of them leads."""
    found = False
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            # Held before it is looked at: its number cannot come to mean somebody else.
            with suppress(OSError):
                descriptor = os.pidfd_open(int(name))
                try:
                    with open(f"/proc/{name}/environ", "rb") as file:
                        is_marked = mark in file.read()
                    if is_marked:
                        found = True
                        if os.getpgid(int(name)) == int(name):
                            os.killpg(int(name), signal.SIGKILL)
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                finally:
                    os.close(descriptor)
    return found


def main(mark: bytes) -> None:
    until = time.monotonic() + GIVE_UP_SECONDS
    quiet = 0
    while quiet < QUIET_LOOKS and time.monotonic() < until:
        quiet = 0 if kill_marked(mark) else quiet + 1
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1].encode())
