"""A work folder that is three hundred folders deep."""

import os

os.chdir(os.environ['SKILL_WORK_DIR'])
for _ in range(300):
    os.mkdir('d')
    os.chdir('d')
print('done')
