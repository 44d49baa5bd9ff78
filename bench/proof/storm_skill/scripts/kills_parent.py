"""Kills whoever started it."""

import os
import signal

print('done', flush=True)
try:
    os.kill(os.getppid(), signal.SIGKILL)
except OSError:
    pass
