"""How long the command line takes to start: ``uv run python -m benchmarks.startup [--runs N]``.

Prints the medians of ``moorage --help`` and ``moorage plugins`` beside bare Python, in one run (PLUG-8).
Goals on a quiet machine: 150 ms and 500 ms.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "moorage --help": ["-m", "moorage", "--help"],
    "moorage plugins": ["-m", "moorage", "plugins"],
}


def once(arguments: list[str], folder: str) -> float:
    """Milliseconds of one run."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Interleave the commands, so that a busy moment strikes all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for arguments in COMMANDS.values():
            once(arguments, folder)  # warm the caches
        for _ in range(runs):
            for name, arguments in COMMANDS.items():
                taken[name].append(once(arguments, folder))
    bare = statistics.median(taken["python -c pass"])
    print(f"{'command':18} {'median ms':>10} {'least ms':>10} {'times bare':>11}   ({runs} runs)")
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"{name:18} {median:10.0f} {min(times):10.0f} {median / bare:11.1f}")


if __name__ == "__main__":
    main()
