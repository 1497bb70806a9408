"""The default agent in a real gateway process, through the public LangGraph client."""

from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from support.installing import installed
from support.runs import until

from moorage.testing.process import GatewayProcess
from moorage_api.demo.processes import TASK_TOOLSET, jobs_server


@pytest.mark.req("RUN-5", "RUN-6", "NOTE-2", "NOTE-6", "TASK-3")
async def test_submit_notification_and_answer_in_one_thread_over_http(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    path = installed(tmp_path / "site", "scripted_agent_plugin")
    with jobs_server(tmp_path / "jobs.log") as jobs_url:
        jobs = {"type": "http", "url": jobs_url, "task_toolsets": [TASK_TOOLSET]}
        environment = {"PYTHONPATH": path, "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.5"}
        config = {"mcpServers": {"jobs": jobs}}
        with GatewayProcess(tmp_path / "home", config=config, environment=environment) as gateway:
            client = get_client(url=f"{gateway.url}/api", api_key=gateway.admin_key)
            thread = (await client.threads.create())["thread_id"]
            asked: dict[str, Any] = {"messages": [{"role": "user", "content": str(folder)}]}
            first: Any = await client.runs.wait(thread, "scripted", input=asked)
            assert first["messages"][-1]["content"] == "I started it."

            async def told() -> bool:
                runs = await client.runs.list(thread)
                return len(runs) == 2 and all(run["status"] == "success" for run in runs)

            await until(told, within=30)
            state: Any = await client.threads.get_state(thread)
            await client.aclose()
    messages = state["values"]["messages"]
    assert [m["type"] for m in messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert messages[-2]["additional_kwargs"]["moorage_internal"] is True
    assert messages[-1]["content"].startswith("It ended:")
    assert '"files":1' in messages[-1]["content"].replace(" ", "")
