"""Figures that several measurements take alike."""
import contextlib
from pathlib import Path


def percentile(values, share):
    """The value below which so many of a sorted list are."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def times(pids):
    """Nanoseconds of processor time of all threads of these processes."""
    return _schedule(pids, 0)


def waits(pids):
    """Nanoseconds for which these threads could have run and had no processor, as something else had it."""
    return _schedule(pids, 1)


def _schedule(pids, number):
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[number])
    return total
