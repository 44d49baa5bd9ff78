"""More threads than it may have."""

import threading
import time

for _ in range(60):
    threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
print('done')
