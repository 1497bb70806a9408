"""What plugins do on their own neither ends the gateway's process nor keeps it from ending (PLUG-7)."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.req("PLUG-7")

START = """
import asyncio, logging, signal, sys, threading, time
from moorage.gateway import process as module
from moorage.gateway.process import Process
from moorage.host import LoadReport, PluginHost, PluginState

module.LEAVING_SECONDS = 0.5
logging.basicConfig(format="%(message)s")
report = LoadReport("bad", "d", "1", entry_point="__main__", state=PluginState.LOADED)
host = PluginHost([report], [])
process = Process(lambda: host)

async def leaves(code):
    sys.exit(code)

def leaves_at_once():
    sys.exit(4)

def waits():
    threading.Event().wait()
"""
LEFT = """
async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def main():
    loop = asyncio.get_running_loop()
    asyncio.create_task(leaves(3))
    loop.call_soon(leaves_at_once)
    await asyncio.sleep(0.05)
    kept = asyncio.create_task(stubborn(), name="stubborn")
    threading.Thread(target=waits, name="thread").start()
    aside = asyncio.create_task(asyncio.to_thread(waits))
    await asyncio.sleep(0.05)
    print([failure.text for failure in host.failures("bad")])
    return "well"

print(process.run(main()))
"""
SIGNALLED = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))

async def main():
    print("inside", flush=True)
    await asyncio.Event().wait()

process.run(main())
"""
OWN_END = """
process.run(leaves(5))
"""
BLOCKED = """
async def main():
    process.ends_within(0.2)
    time.sleep(60)

process.run(main())
"""


def run(script: str, *, until: str = "", number: int = 0) -> tuple[int, str, str]:
    """Exit status, output, log; it is sent the signal once it has printed ``until``."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", START + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    ) as process:
        try:
            if until:
                assert process.stdout is not None
                assert process.stdout.readline() == f"{until}\n"
                process.send_signal(number)
            output, log = process.communicate(timeout=30)
        finally:
            process.kill()
    return process.returncode, output, log


def test_exits_and_leftovers_of_a_plugin_are_survived_and_named() -> None:
    began = time.monotonic()
    status, output, log = run(LEFT)
    assert (status, output.splitlines()[-1]) == (0, "well"), log
    assert time.monotonic() - began < 20
    told = output.splitlines()[0]
    assert "ended a task of its own: it called sys.exit(3), at __main__" in told
    assert "(leaves_at_once)" in told
    assert "plugin 'bad': ended a task of its own" in log
    assert "task 'stubborn' of plugin 'bad', at __main__" in log
    for thread in ("thread", "asyncio_0"):
        assert f"the process ends though thread '{thread}' of plugin 'bad', at __main__" in log
    assert "MainThread" not in log


def test_a_signal_handlers_exit_and_that_of_the_main_coroutine_end_the_process() -> None:
    assert run(SIGNALLED, until="inside", number=signal.SIGTERM)[0] == 7
    assert run(OWN_END)[0] == 5


def test_a_process_that_does_not_come_to_its_end_is_ended_and_its_blocker_named() -> None:
    status, _, log = run(BLOCKED)
    assert status == 1
    assert "the process ends though thread 'MainThread' of plugin 'bad', at __main__" in log
