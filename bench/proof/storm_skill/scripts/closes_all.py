"""Closes everything, its output too."""

import os

os.closerange(0, 1000)
os._exit(0)
