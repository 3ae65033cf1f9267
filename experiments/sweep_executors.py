"""Where the points of a sweep are simulated: in this process, on all cores, or on a Dask cluster.

All three are `concurrent.futures` executors, so a sweep does not know which one it has.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager

from a2a3sim import ConfigError

__all__ = ["InProcess", "executor", "usable_cores"]

_DASK_TIMEOUT = "10s"
_ADDRESS = re.compile(r"([a-z]+://)?\S+:[0-9]+(/\S*)?")


class InProcess(Executor):
    """Runs what it is given at once."""

    def submit(self, fn, /, *args, **kwargs) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def executor(jobs: int, dask: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor and the number of its workers.

    Args:
        jobs: processes here; 1 takes this one.
        dask: address of a scheduler, which comes before ``jobs``.

    Raises:
        ConfigError: ``dask`` without the extra, or nobody at the address.
    """
    if dask is not None:
        with _dask(dask) as found:
            yield found
    elif jobs == 1:
        yield InProcess(), 1
    else:
        pool = _pool(jobs)
        try:
            yield pool, jobs
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def _pool(jobs: int) -> ProcessPoolExecutor:
    import multiprocessing

    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["a2a3sim.experiments.sweep_worker"])  # imported once for all workers
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker)


def _start_worker() -> None:
    """End with the sweep, even when that is killed; leave Ctrl-C to it."""
    import signal
    from multiprocessing import connection, parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("--dask needs the extra: pip install 'a2a3sim[dask]'") from None
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(
            f"--dask must be the address of a scheduler such as tcp://10.0.0.1:8786, got {address!r}"
        )
    try:
        client = Client(address, timeout=_DASK_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"--dask: no scheduler answers at {address!r}: {reason}") from None
    with client:
        workers = sum(client.nthreads().values())
        if not workers:
            raise ConfigError(f"--dask: the scheduler at {address!r} has no workers")
        yield client.get_executor(pure=False, retries=2), workers
