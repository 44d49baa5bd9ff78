"""A child that holds the pipes and does not hear SIGTERM."""

import os
import signal
import time

if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
print('done')
