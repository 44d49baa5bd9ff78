"""A Celery app of your own that also runs skills: your tasks and ours, in one worker, through one broker.

Start a worker with Celery's own command, and then order a run from anywhere:

    export SKILLKIT_STATE='postgresql://me@db.example.com/skills?world=acme' SKILLKIT_BROKER=redis://broker/0
    celery -A celery_app worker --pool threads --concurrency 4 --loglevel INFO \
        -Q celery,acme.python3.bubblewrap
    python celery_app.py "The cat sat. The dog ran."

The login needs the roles acme_worker (to run) and acme_front (to order). The policy here asks nobody; with GUARDED,
which is the default, the run waits for a person on the page.
Needs: pip install "skillkit-runtime[fleet,postgres]" redis
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from celery import Celery

from skillkit import STANDARD, SkillManager
from skillkit.fleet import CeleryRunner, add_task

SKILLS = Path(__file__).parent / "skills"

app = Celery("shop", broker=os.environ["SKILLKIT_BROKER"])
app.conf.update(accept_content=["json"], worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True)

# Workers of this app run what is ordered for the shared world, within this policy and no other.
add_task(app, policy=STANDARD)
runner = CeleryRunner(app)


@app.task(name="shop.look_at", ignore_result=True)
def look_at(text: str) -> None:
    """A task of yours may order runs too. It does not wait for them: a worker that waits cannot run anything."""
    with manager() as skills:
        run = runner.order(skills, "text-stats", "stats", {"text": text})
        print(f"ordered {run.id}", flush=True)


def manager() -> SkillManager:
    """Everything as on one machine, but for where scripts run; the world is the one in $SKILLKIT_STATE."""
    return SkillManager(SKILLS, "", [], [], policy=STANDARD, runner=runner)


def main(text: str) -> None:
    with manager() as skills:
        result = skills.execute_skill_script("text-stats", "stats", {"text": text})
    print(result.stdout, end="")
    look_at.delay(text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "The cat sat. The dog ran.")
