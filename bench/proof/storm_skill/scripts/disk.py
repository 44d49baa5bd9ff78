"""Fills the disk."""

import os

with open(os.environ['SKILL_WORK_DIR'] + '/f', 'wb') as file:
    while True:
        file.write(b'x' * (1 << 20))
