"""A driver whose jobs take no longer than being asked about: what each call gets and returns."""

import sys
from collections.abc import Iterable, Sequence

from moorage.contract import (
    GatewayContext,
    ServerClaim,
    ServerConfig,
    SubmitCall,
    TaskBinding,
    TaskDriver,
    TaskDriverSpec,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    hookimpl,
)


class Instant:
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        claimed = [name for name in tool_names if name.endswith("_later")]
        return ServerClaim(submit={name: TaskBinding("instant", name) for name in claimed})

    async def submit(self, call: SubmitCall) -> TaskHandle:
        return TaskHandle(remote_id=f"job-of-{call.task_id}")

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        return TaskSnapshot(status=TaskStatus.COMPLETED, remote_id=ref.remote_id, result={"done": True})

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return TaskSnapshot(status=TaskStatus.CANCELLED, remote_id=ref.remote_id)


def build(context: GatewayContext) -> TaskDriver:
    return Instant()


@hookimpl
def moorage_task_drivers() -> Iterable[TaskDriverSpec]:
    return (TaskDriverSpec("instant", build),)


if __name__ == "__main__":
    from pathlib import Path

    from moorage.testing import gateway_context, host_with, server_config

    (one,) = host_with(sys.modules[__name__]).drivers()
    driver = one.spec.build(gateway_context(Path("unused")))
    claim = driver.claim(server_config("renderer", transport="http"), ["render_later", "look"])
    print(f"durable: {', '.join(claim.submit)}")
