"""The assistant in a real gateway."""

from pathlib import Path

import httpx
from moorage.testing import GatewayProcess


def test_it_answers_and_remembers(tmp_path: Path) -> None:
    with (
        GatewayProcess(tmp_path / "home") as gateway,
        httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
    ):
        thread = http.post("/api/threads", json={}).json()["thread_id"]
        body = {
            "assistant_id": "{{ cookiecutter.name }}",
            "input": {"messages": [{"role": "user", "content": "one two three"}]},
        }
        answered = http.post(f"/api/threads/{thread}/runs/wait", json=body).json()
        assert answered["messages"][-1]["content"] == "That was 3 words."
        state = http.get(f"/api/threads/{thread}/state").json()
        assert len(state["values"]["messages"]) == 2
