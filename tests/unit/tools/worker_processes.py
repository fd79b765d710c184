"""What the other process does in tests of `run_jobs`: it behaves, or in some way does not.

Which way is said by the seed in the settings, the one number that travels there anyway.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

from tools.bench.measure import Settings
from tools.bench.results import failure
from tools.bench.worker import Job, Refusal, Roofs

BEHAVES, CRASHES_ON_BF16, HANGS_ON_BF16, REFUSES, ENDS_AFTER_EACH, ENDS_AT_ONCE = range(6)
EXIT_CODE = 7


def answer(
    connection: Connection, jobs: Sequence[Job], settings: Settings, roofs_for: tuple[str, ...]
) -> None:
    """Send a result for each job that holds the process's number."""
    behaviour = settings.seed
    if behaviour == REFUSES:
        connection.send(Refusal("not here"))
        return
    if behaviour == ENDS_AT_ONCE:
        return
    if roofs_for:
        connection.send(Roofs("Test GPU", 1.0, dict.fromkeys(roofs_for, 2.0)))
    for job in jobs:
        if job.dtype == "bf16" and behaviour == CRASHES_ON_BF16:
            os._exit(EXIT_CODE)
        if job.dtype == "bf16" and behaviour == HANGS_ON_BF16:
            time.sleep(600)
        connection.send([failure(job.problem(), f"process {os.getpid()}")])
        if behaviour == ENDS_AFTER_EACH:
            return
