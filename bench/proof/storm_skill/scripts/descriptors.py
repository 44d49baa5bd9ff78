"""As many open files as it gets."""

import os

held = []
try:
    while True:
        held.append(os.open('/dev/null', os.O_RDONLY))
except OSError:
    print('done')
