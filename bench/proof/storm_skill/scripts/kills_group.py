"""Kills its own process group."""

import os
import signal

print('done', flush=True)
os.killpg(0, signal.SIGKILL)
