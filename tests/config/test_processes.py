"""Several real processes on one file (CONF-5)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.extensions import Extensions

COUNT = 15
WRITER = """
import asyncio, json, pathlib, sys
from moorage.config import ConfigEditor, ExtensionsFile, PreconditionFailed

async def main(prefix, count):
    file = ExtensionsFile(explicit=None, env={}, cwd=pathlib.Path.cwd())
    editor = ConfigEditor(file, lock_timeout_seconds=60)

    async def enable(number):
        await editor.set_enabled(f"{prefix}{number}", True)

    async def rewrite(number):
        while True:
            view = await editor.view()
            body = json.loads(json.dumps(view.config))
            body["mcpServers"][f"{prefix}{number}"]["note"] = prefix
            try:
                await editor.replace(body, if_match=view.etag)
                return
            except PreconditionFailed:
                await asyncio.sleep(0)

    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(*map(enable, range(count)))
    await rewrite(0)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
READER = """
import json, pathlib, sys
path = pathlib.Path("extensions_config.json")
print("ready", flush=True)
reads = 0
while not pathlib.Path("stop").exists():
    json.loads(path.read_bytes())
    reads += 1
print(reads, flush=True)
"""


def start(folder: Path, code: str, *args: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.req("CONF-5", "ADMIN-6")
def test_all_changes_of_two_processes_survive_and_no_reader_sees_a_torn_file(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    padding = "x" * 20_000  # long enough for a torn write to be seen
    names = [f"{prefix}{number}" for prefix in "ab" for number in range(COUNT)]
    config.write(
        {name: {"command": "npx", "enabled": False, "env": {"K": "secret"}} for name in names}, p=padding
    )
    writers = [start(tmp_path, WRITER, prefix, str(COUNT)) for prefix in "ab"]
    reader = start(tmp_path, READER)
    try:
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=120)
            assert writer.returncode == 0
    finally:
        (tmp_path / "stop").touch()
        output, _ = reader.communicate(timeout=60)
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert reader.returncode == 0
    assert int(output) > 0
    servers = config.raw()["mcpServers"]
    assert [name for name in names if servers[name]["enabled"] is not True] == []
    assert {name: servers[name]["note"] for name in names if "note" in servers[name]} == {
        "a0": "a",
        "b0": "b",
    }
    assert {json.dumps(server["env"]) for server in servers.values()} == {'{"K": "secret"}'}
    assert config.raw()["p"] == padding
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"extensions_config.json", ".extensions_config.json.lock", "stop"}
