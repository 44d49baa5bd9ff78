"""Signals everybody it may signal."""

import os
import signal

print('done', flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.kill(-1, signal.SIGTERM)
except OSError:
    pass
