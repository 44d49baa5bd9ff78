"""Twenty children that stay."""

import os
import time

for _ in range(20):
    if os.fork() == 0:
        time.sleep(300)
print('done')
