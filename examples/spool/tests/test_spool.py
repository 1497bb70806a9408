"""The folder and its worker, for real."""

import sys
import threading
import time
from pathlib import Path

import pytest

from moorage_spool.spool import Spool
from moorage_spool.worker import work

COUNT = [
    sys.executable,
    "-c",
    "import json,sys; print(json.dumps({'words': len(json.load(sys.stdin)['text'].split())}))",
]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool")
    made.prepare()
    return made


def test_a_job_goes_from_new_to_done(spool: Spool) -> None:
    assert spool.put("a1", {"text": "one two three"}) == {"id": "a1", "state": "queued"}
    assert spool.put("a1", {"text": "again"})["state"] == "queued", "the same id is the same job"
    work(spool, COUNT, until_empty=True)
    assert spool.look("a1") == {"id": "a1", "state": "done", "result": {"words": 3}}
    assert spool.put("a1", {"text": "again"})["state"] == "done"
    assert spool.look("b2")["state"] == "gone"


def test_a_command_that_fails_says_why(spool: Spool) -> None:
    spool.put("a1", {})
    work(spool, [sys.executable, "-c", "import sys; sys.exit('out of film')"], until_empty=True)
    assert spool.look("a1") == {"id": "a1", "state": "failed", "error": "out of film"}


def test_what_waits_is_withdrawn_at_once_and_what_runs_is_stopped(spool: Spool) -> None:
    spool.put("a1", {})
    assert spool.withdraw("a1")["state"] == "cancelled"
    spool.put("b2", {})
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    worker = threading.Thread(target=work, args=(spool, sleeper), kwargs={"until_empty": True})
    worker.start()
    deadline = time.monotonic() + 20
    while spool.look("b2")["state"] != "running":
        assert time.monotonic() < deadline
    spool.withdraw("b2")
    worker.join(20)
    assert spool.look("b2")["state"] == "cancelled"


def test_a_worker_takes_up_what_a_former_one_left(spool: Spool) -> None:
    spool.put("a1", {"text": "one"})
    (spool.folder / "new" / "a1.json").rename(spool.folder / "running" / "a1.json")
    assert spool.look("a1")["state"] == "running"
    work(spool, COUNT, until_empty=True)
    assert spool.look("a1")["state"] == "done"


def test_an_id_leads_nowhere_else(spool: Spool) -> None:
    for wrong in ("../x", "a/b", "", ".", "a.json"):
        with pytest.raises(OSError, match="letters and digits"):
            spool.look(wrong)
