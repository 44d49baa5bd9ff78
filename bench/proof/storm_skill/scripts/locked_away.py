"""A folder that nobody may enter."""

import os

os.mkdir(os.environ['SKILL_WORK_DIR'] + '/x')
open(os.environ['SKILL_WORK_DIR'] + '/x/y', 'w').close()
os.chmod(os.environ['SKILL_WORK_DIR'] + '/x', 0)
print('done')
