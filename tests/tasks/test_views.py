"""What API and CLI show of a task (API-3)."""

import json

import pytest
from support.fake_driver import completed
from support.rig import Rig

from moorage.tasks.views import detail, list_row

ROW = {
    "task_id",
    "task_name",
    "server_name",
    "driver",
    "status",
    "created_at",
    "updated_at",
    "error",
    "tracking_degraded",
    "cancel_requested",
}
DETAIL = ROW | {
    "last_polled_at",
    "last_poll_error",
    "last_cancel_error",
    "cancel_attempt_count",
    "notification_status",
    "notification_error",
    "notification_attempt_count",
    "result",
    "result_preview",
    "result_truncated",
    "result_artifact",
    "input_required",
}


@pytest.mark.req("API-3")
async def test_the_fields_are_those_of_the_specification_and_the_remote_id_is_not_among_them(
    rig: Rig,
) -> None:
    rig.driver.on_poll["*"] = [completed({"files": 3}, remote_id="r1")]
    task_id = (await rig.submit(data={"status_tool": "hidden-binding"})).task_id
    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert set(list_row(row)) == ROW
    assert set(detail(row)) == DETAIL
    text = json.dumps(detail(row))
    assert '"r1"' not in text
    assert "hidden-binding" not in text
    assert detail(row)["created_at"] == "2030-01-01T12:00:00Z"
    assert detail(row)["notification_attempt_count"] == 1
    assert detail(row)["result"] == {"files": 3}
