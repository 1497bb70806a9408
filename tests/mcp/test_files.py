"""A thread's workspace, what answers call its files, and what is told of changes (STDIO-1, 2, 4)."""

import asyncio
import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.mcp_servers import Gateway, context, gateway, stdio, until

from moorage.contract import NotFound, ThreadFiles, ToolCaller, ToolResult
from moorage_drivers.mcp.paths import Translator

VIRTUAL = "/mnt/user-data/workspace"


class Events:
    """As much of a store as summaries need."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.events = self

    async def append(self, thread_id: str, **fields: Any) -> None:
        self.rows.append({"thread_id": thread_id, **fields})


async def call(made: Gateway, tool: str = "ok", arguments: Any = None, **who: Any) -> ToolResult:
    caller = made.context.service(ToolCaller)
    return await caller.call(
        "s", tool, arguments or {}, context=context(**who), phase=who.pop("phase", "call")
    )


def workspace(home: Path, user: str = "alice", thread: str = "t1") -> Path:
    return home / "users" / user / "threads" / thread / "user-data" / "workspace"


@pytest.mark.req("STDIO-1")
async def test_a_threads_process_works_in_its_workspace(tmp_path: Path) -> None:
    async with gateway(tmp_path, stdio("s")) as made:
        about = (await call(made, "about")).structured
        folder = workspace(tmp_path)
        assert about["cwd"] == str(folder)
        temporary = folder / ".mcp" / "tmp"
        assert {about["env"][name] for name in ("TMPDIR", "TMP", "TEMP")} == {str(temporary)}
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o700


@pytest.mark.req("STDIO-1")
async def test_without_a_thread_the_folder_is_private_and_passing(tmp_path: Path) -> None:
    async with gateway(tmp_path, stdio("s")) as made:
        about = (await call(made, "about", thread=None)).structured
        assert not Path(about["cwd"]).is_relative_to(tmp_path)
        assert stat.S_IMODE(Path(about["cwd"]).stat().st_mode) == 0o700
    assert not Path(about["cwd"]).exists()


@pytest.mark.req("STDIO-1")
async def test_what_is_configured_stays(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    async with gateway(tmp_path, stdio("s", cwd=str(own), env={"TMPDIR": str(own)})) as made:
        about = (await call(made, "about")).structured
        assert about["cwd"] == str(own)
        assert about["env"]["TMPDIR"] == str(own)
        assert about["env"]["TMP"] == str(workspace(tmp_path) / ".mcp" / "tmp")


@pytest.mark.req("STDIO-4", "API-5")
async def test_returned_files_can_be_named_and_fetched(tmp_path: Path) -> None:
    async with gateway(tmp_path, stdio("s", "hostile")) as made:
        folder = workspace(tmp_path)
        secret = folder / ".mcp" / "tmp" / "shot 1.png"
        arguments = {
            "paths": ["report.txt", str(secret), "deep/er/data.csv"],
            "say": f"Wrote {folder}/report.txt, report.txt and './deep/er/data.csv'. See \"{secret}\"!",
            "uri": f"file://{str(secret).replace(' ', '%20')}",
        }
        result = await call(made, "write", arguments)
        text, link = result.content
        assert text["text"] == (
            f"Wrote {VIRTUAL}/report.txt, {VIRTUAL}/report.txt and '{VIRTUAL}/deep/er/data.csv'."
            f' See "{VIRTUAL}/.mcp/tmp/shot 1.png"!'
        )
        assert link["uri"] == f"{VIRTUAL}/.mcp/tmp/shot 1.png"
        files = made.context.service(ThreadFiles)
        opened = await files.open("alice", "t1", link["uri"])
        with opened.stream:
            assert opened.stream.read() == b"content"
        assert (opened.name, opened.size_bytes, opened.media_type) == ("shot 1.png", 7, "image/png")


@pytest.mark.req("STDIO-2")
async def test_a_run_tells_what_it_changed(tmp_path: Path) -> None:
    store = Events()
    async with gateway(tmp_path, stdio("s", "hostile"), store=store) as made:
        paths = ["a.txt", "sub/b.txt", ".git/x", "sub/node_modules/y", "deep/.mcp/z", ".mcp/tmp/t"]
        await call(made, "write", {"paths": paths, "say": "done"})
        await call(made, "ok")
        await until(lambda: len(store.rows) == 1, "one event for both calls")
        await call(made, "ok")
    (row,) = store.rows
    assert (row["thread_id"], row["run_id"], row["event_type"]) == ("t1", "run-1", "workspace.changed")
    assert row["payload"] == {"paths": [f"{VIRTUAL}/a.txt", f"{VIRTUAL}/sub/b.txt"], "truncated": False}


@pytest.fixture
def tree(tmp_path: Path) -> SimpleNamespace:
    root = tmp_path / "tree"
    folder = root / "workspace"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("x")
    old = time.time_ns()
    for name in ("a.txt", "twice.txt", "sub/twice.txt", "with space.txt", "plain"):
        (folder / name).write_text("x")
    (folder / "out.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "in.txt").symlink_to(folder / "a.txt")
    return SimpleNamespace(
        root=root, folder=folder, now=Translator(root, folder, old), later=Translator(root, folder, 2**62)
    )


@pytest.mark.req("STDIO-4")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("{f}/a.txt", "{v}/a.txt"),
        ("see {f}/a.txt.", "see {v}/a.txt."),
        ("({f}/a.txt), {f}/sub/twice.txt;", "({v}/a.txt), {v}/sub/twice.txt;"),
        ("file://{f}/a.txt", "{v}/a.txt"),
        ("file://localhost{f}/with%20space.txt", "{v}/with space.txt"),
        ("`{f}/with space.txt`", "`{v}/with space.txt`"),
        ("{f}/in.txt", "{v}/in.txt"),
        ("{f}/out.txt", "{f}/out.txt"),
        ("{f}/../../outside.txt", "{f}/../../outside.txt"),
        ("{f}/missing.txt", "{f}/missing.txt"),
        ("{f}/sub", "{f}/sub"),
        ("/backup{f}/a.txt", "/backup{f}/a.txt"),
        ("{f}/a.txtual", "{f}/a.txtual"),
        ("https://host.example{f}/a.txt", "https://host.example{f}/a.txt"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_absolute_references(tree: SimpleNamespace, said: str, meant: str) -> None:
    names = {"f": str(tree.folder), "v": VIRTUAL}
    assert tree.later.text(said.format(**names)) == meant.format(**names)


@pytest.mark.req("STDIO-4")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("a.txt", "V/a.txt"),
        ("saved to ./a.txt.", "saved to V/a.txt."),
        ("sub/twice.txt", "V/sub/twice.txt"),
        ("twice.txt", "twice.txt"),
        ("plain", "plain"),
        ("other.txt", "other.txt"),
        ("http://x/a.txt", "http://x/a.txt"),
        ("x/a.txt", "x/a.txt"),
        ("../a.txt", "../a.txt"),
        ("out.txt", "out.txt"),
        ("a.txt.bak", "a.txt.bak"),
        ("user@a.txt", "user@a.txt"),
    ],
)
def test_bare_names_of_what_the_call_touched(tree: SimpleNamespace, said: str, meant: str) -> None:
    assert tree.now.text(said) == meant.replace("V/", f"{VIRTUAL}/")
    assert tree.later.text(said) == said


@pytest.mark.req("API-5", "STDIO-4")
async def test_nothing_outside_the_tree_is_opened(tmp_path: Path) -> None:
    async with gateway(tmp_path, stdio("s")) as made:
        files = made.context.service(ThreadFiles)
        folder = workspace(tmp_path)
        folder.mkdir(parents=True)
        (tmp_path / "outside.txt").write_text("x")
        (folder / "out.txt").symlink_to(tmp_path / "outside.txt")
        (folder / "in.txt").write_text("in")
        (folder / "link.txt").symlink_to(folder / "in.txt")
        (folder.parent.parent / "sibling").mkdir()
        os.mkfifo(folder / "pipe")
        for path in (
            "workspace/out.txt", "../../../../outside.txt", "/etc/passwd", "workspace", "", "/", "a\x00b",
            "workspace/pipe", "workspace/../../sibling", "workspace/missing", "//etc/passwd",
            "workspace/in.txt/x",
        ):  # fmt: skip
            async with asyncio.timeout(2):
                with pytest.raises(NotFound):
                    await files.open("alice", "t1", path)
        for user, thread in (("bob", "t1"), ("alice", "t2"), ("..", "t1"), ("alice", "../alice/threads/t1")):
            with pytest.raises(NotFound):
                await files.open(user, thread, "workspace/in.txt")
        for path in ("workspace/in.txt", f"{VIRTUAL}/in.txt", "workspace/link.txt", "/workspace/in.txt"):
            opened = await files.open("alice", "t1", path)
            with opened.stream:
                assert opened.stream.read() == b"in"
