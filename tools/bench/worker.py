"""Measuring in a process of its own, so that a kernel that hangs or faults costs its problem only.

All contenders of a problem run in one process on the same arrays. A new process takes over the
rest when one is lost.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from tools.bench.case import Problem
from tools.bench.errors import BenchError, summary
from tools.bench.measure import Settings, measure
from tools.bench.registry import all_cases
from tools.bench.results import Result, failure
from tools.bench.stopwatch import Stopwatch
from tools.bench.torch_machine import TorchMachine


@dataclass(frozen=True)
class Job:
    """A problem by the name of its case, as it is sent to the other process."""

    case: str
    dtype: str
    size: tuple[int, ...]

    def problem(self) -> Problem:
        """The problem."""
        return Problem(all_cases()[self.case], self.dtype, self.size)

    def __str__(self) -> str:
        return f"{self.case} {self.dtype} {'x'.join(map(str, self.size))}"


@dataclass(frozen=True)
class Roofs:
    """What the machine can do at most: bytes a second, and operations a second by type."""

    gpu: str
    bytes_per_second: float
    flops_per_second: dict[str, float]


@dataclass(frozen=True)
class Refusal:
    """Why nothing can be measured at all."""

    reason: str


@dataclass(frozen=True)
class Spent:
    """Where the time of the job went whose results come next, in words."""

    text: str


Message = list[Result] | Roofs | Spent | Refusal
Work = Callable[[Connection, Sequence[Job], Settings, tuple[str, ...]], None]
"""What the other process does: it sends the results of each job, in their order."""

_GRACE_SECONDS = 5.0


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    timeout: float,
    roofs_for: Sequence[str] = (),
    work: Work | None = None,
) -> Iterator[Roofs | Spent | list[Result]]:
    """Run jobs and give the results of each, in order; before them the roofs, if types are named.

    Before the results of a job comes how long it took, if it came to its end.

    A job that takes longer than `timeout` seconds, or whose process ends, gives one result that
    says so. BenchError if the machine is not fit for it.
    """
    pending = deque(jobs)
    wanted = tuple(roofs_for)
    while pending:
        for message in _one_process(pending, settings, timeout, wanted, work or measure_jobs):
            if isinstance(message, Refusal):
                raise BenchError(message.reason)
            if isinstance(message, Roofs):
                wanted = ()
            yield message


def _one_process(
    pending: deque[Job], settings: Settings, timeout: float, roofs_for: tuple[str, ...], work: Work
) -> Iterator[Message]:
    """What one process sends; takes the jobs that are done, or lost with it, off `pending`."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(sender, list(pending), settings, roofs_for))
    process.start()
    sender.close()
    given = len(pending)
    is_ending = False
    try:
        while pending:
            if not receiver.poll(timeout):
                yield [_lost(pending.popleft(), f"it did not end within {timeout:g} s")]
                return
            try:
                message: Message = receiver.recv()
            except EOFError:
                is_ending = True
                process.join(_GRACE_SECONDS)
                if process.exitcode != 0 or len(pending) == given:
                    yield [_lost(pending.popleft(), _how_it_ended(process))]
                return
            if isinstance(message, list):
                pending.popleft()
            yield message
        is_ending = True
    finally:
        if not is_ending:
            process.kill()
        _end(process)
        receiver.close()


def _lost(job: Job, note: str) -> Result:
    return failure(job.problem(), note)


def _how_it_ended(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


def _end(process: BaseProcess) -> None:
    process.join(_GRACE_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


# In the other process ----------------------------------------------------------------------------


def measure_jobs(
    connection: Connection, jobs: Sequence[Job], settings: Settings, roofs_for: tuple[str, ...]
) -> None:
    """Measure jobs on the GPU and send the results; ends early if the GPU's context is lost."""
    try:
        machine = TorchMachine()
    except BenchError as error:
        connection.send(Refusal(str(error)))
        return
    if roofs_for:
        connection.send(_measure_roofs(machine, roofs_for))
    for job in jobs:
        watch = Stopwatch()
        results = _measure_job(job, machine, settings, watch)
        connection.send(Spent(str(watch)))
        connection.send(results)
        if not machine.is_alive():
            return
        machine.release()


def _measure_job(
    job: Job, machine: TorchMachine, settings: Settings, watch: Stopwatch
) -> list[Result]:
    problem = job.problem()
    try:
        return measure(problem, machine, settings, watch)
    except BenchError as error:
        return [failure(problem, str(error))]
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return [failure(problem, summary(error))]


def _measure_roofs(machine: TorchMachine, dtypes: Sequence[str]) -> Roofs:
    products = {dtype: machine.product_rate(dtype) for dtype in dtypes}
    roofs = Roofs(machine.name, machine.copy_rate(), products)
    machine.release()
    return roofs
