"""Many files in its work folder."""

import os

for n in range(400):
    open(f"{os.environ['SKILL_WORK_DIR']}/{n}", 'w').close()
print('done')
