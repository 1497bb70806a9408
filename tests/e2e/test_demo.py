"""``moorage demo``, as a stranger runs it."""

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import psutil
import pytest


def figures_by_hand(folder: Path) -> dict[str, object]:
    """The same figures, found in another way than the job finds them."""
    skipped = {"__pycache__", "site-packages", "dist-packages"}
    files = sorted(
        (path.relative_to(folder).as_posix(), path)
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and not skipped & set(path.relative_to(folder).parts[:-1])
        and not any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(folder))
    )
    lines = "".join(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n" for name, path in files)
    return {
        "folder": str(folder),
        "files": len(files),
        "bytes": sum(path.stat().st_size for _, path in files),
        "sha256": hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest(),
    }


def demo(*arguments: str, temporary: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "moorage", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(temporary)},
        cwd=temporary,
        check=False,
    )


@pytest.mark.req("TASK-10", "TASK-19", "NOTE-2", "OPS-1", "ORD-2")
def test_the_job_outlives_the_killed_gateway_and_arrives_once(tmp_path: Path) -> None:
    done = demo("--json", "--seconds", "8", temporary=tmp_path)
    assert done.returncode == 0, done.stderr
    evidence = json.loads(done.stdout)

    assert evidence["result"] == figures_by_hand(Path(sysconfig.get_path("stdlib")))
    first, second = evidence["gateways"]
    assert first["exit_status"] == -9
    assert first["pid"] != second["pid"]
    assert evidence["task_before_kill"]["status"] == "working"
    assert evidence["task"]["status"] == "completed"
    assert evidence["task"]["notification_status"] == "delivered"
    assert len(evidence["notification_messages"]) == 1
    assert evidence["task_id"] in evidence["notification_messages"][0]
    assert evidence["result"]["sha256"] in evidence["notification_messages"][0]
    assert evidence["seconds"] > 0

    assert list(tmp_path.iterdir()) == [], "the demo cleans up after itself"
    for pid in (first["pid"], second["pid"]):
        assert not psutil.pid_exists(pid)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep" / "__pycache__").mkdir(parents=True)
    (folder / "a.txt").write_text("one")
    (folder / "deep" / "b.bin").write_bytes(b"\0two")
    (folder / "deep" / "__pycache__" / "c.pyc").write_bytes(b"left out")
    with tempfile.TemporaryDirectory() as temporary:
        done = demo("--json", "--seconds", "4", "--folder", str(folder), temporary=Path(temporary))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result == figures_by_hand(folder)
    assert (result["files"], result["bytes"]) == (2, 7)


def test_a_folder_that_does_not_exist_is_said_plainly(tmp_path: Path) -> None:
    done = demo("--seconds", "4", "--folder", str(tmp_path / "nowhere"), temporary=tmp_path)
    assert done.returncode == 1
    assert "there is no such folder" in done.stdout
    assert "Traceback" not in done.stderr + done.stdout
