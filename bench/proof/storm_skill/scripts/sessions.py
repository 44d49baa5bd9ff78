"""Programs in sessions of their own."""

import subprocess
import sys
import time

for _ in range(5):
    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)
print('done')
