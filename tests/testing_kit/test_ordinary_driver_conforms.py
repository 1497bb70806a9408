"""The built-in driver under the suite that strangers use."""

from collections.abc import Mapping
from typing import Any

from moorage.contract import GatewayContext, TaskDriver, TaskStatus, ToolResult
from moorage.testing import FaultyRemote, Operation, Said, ToolDriverConformance, Trouble
from moorage_drivers.ordinary.driver import OrdinaryDriver
from moorage_drivers.ordinary.model import TaskToolset


class TestOrdinaryDriver(ToolDriverConformance):
    name = "ordinary"
    operations: Mapping[str, Operation] = {
        "run": Operation.SUBMIT,
        "look": Operation.STATUS,
        "stop": Operation.CANCEL,
        "tell": Operation.RESPOND,
    }
    tools = tuple(operations)

    def sections(self, remote: FaultyRemote) -> Mapping[str, Any]:
        toolset = TaskToolset(
            name="job", submit_tool="run", status_tool="look", cancel_tool="stop", respond_tool="tell"
        )
        return {"task_toolsets": [toolset]}

    def build(self, gateway: GatewayContext, remote: FaultyRemote) -> TaskDriver:
        return OrdinaryDriver(gateway)

    def spell(self, said: Said) -> ToolResult:
        status = "running" if said.status in (TaskStatus.WORKING, TaskStatus.SUBMITTED) else str(said.status)
        fields = {
            "task_id": said.remote_id,
            "status": status,
            "result": said.result,
            "error": said.error,
            "input_required": said.input_required,
            "poll_after_seconds": said.poll_after_seconds,
        }
        return ToolResult(structured={key: value for key, value in fields.items() if value is not None})

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        if trouble is Trouble.FORGOTTEN:
            return ToolResult(
                structured={"task_id": remote_id, "status": "failed", "error_code": "task_not_found"}
            )
        return super().fail(trouble, operation, remote_id)
