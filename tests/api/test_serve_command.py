"""``moorage serve`` as a process: what it prints, and how it ends (OPS-1, API-2, C74)."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.req("OPS-1", "API-2")

LIB = str(Path(__file__).parents[1] / "lib")


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "support.serve_fake", "serve", "--port", "0", *arguments],
        env={**inherited, "PYTHONPATH": LIB, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr.read() if process.stderr else ""
    found: dict[str, str] = json.loads(line)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_line_serves_and_ends_well(number: signal.Signals) -> None:
    with started("--json") as process:
        said = line_of(process)
        key = said["admin_key"]
        assert key.startswith("moorage_")
        assert httpx.get(f"{said['url']}/api/plugins").status_code == 401
        assert httpx.get(f"{said['url']}/api/plugins", headers={"X-Api-Key": key}).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, ""), err
        assert key not in err
        assert "Traceback" not in err


def test_people_are_told_the_address_and_the_key() -> None:
    with started() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Moorage listens at http://127.0.0.1:")
        assert "moorage_" in process.stdout.readline()


def test_a_given_admin_key_is_used_and_not_printed() -> None:
    with started("--json", MOORAGE_ADMIN_KEY="an-admin-key-for-tests") as process:
        said = line_of(process)
        assert said["admin_key"] is None
        headers = {"Authorization": "Bearer an-admin-key-for-tests"}
        assert httpx.get(f"{said['url']}/api/plugins", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {"FAKE_FAIL": "1"}, "the database is down"),
        (("--host", "0.0.0.0"), {"MOORAGE_API_AUTHENTICATION": "false"}, "without authentication"),
        ((), {"MOORAGE_ADMIN_KEY": "short"}, "MOORAGE_ADMIN_KEY"),
        ((), {"MOORAGE_API_PORT": "many"}, "MOORAGE_API_PORT"),
        (("--host", "192.0.2.7"), {}, "cannot listen on 192.0.2.7"),
    ],
)
def test_a_start_that_fails_says_why_in_one_message(
    arguments: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    with started("--json", *arguments, **environment) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started("--port", port) as process:
            _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert port in err


def test_a_signal_while_it_opens_ends_it_at_once() -> None:
    with started("--json", FAKE_SLOW="1") as process:
        assert process.stderr is not None
        assert "opening" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    assert "before it was ready" in err
