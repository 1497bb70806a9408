"""Runs that clients start must say what they are for."""

import sys
from collections.abc import Iterable, Mapping

from moorage.contract import (
    AdmissionRejected,
    GatewayContext,
    RunRequest,
    RunValidator,
    RunValidatorSpec,
    hookimpl,
)


class Purpose:
    async def validate(self, request: RunRequest) -> None:
        purpose = request.metadata.get("purpose") if isinstance(request.metadata, Mapping) else None
        if request.origin == "api" and not purpose:
            raise AdmissionRejected("metadata.purpose is missing")


def build(context: GatewayContext) -> RunValidator:
    return Purpose()


@hookimpl
def moorage_run_validators() -> Iterable[RunValidatorSpec]:
    return (RunValidatorSpec("purpose", 100, build),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.contract import Principal
    from moorage.testing import gateway_context, host_with

    (one,) = host_with(sys.modules[__name__]).run_validators()
    validator = one.spec.build(gateway_context(Path("unused")))
    request = RunRequest(assistant_id="direct", thread_id="t", principal=Principal("alice"), input=None)
    try:
        asyncio.run(validator.validate(request))
    except AdmissionRejected as refused:
        print(refused)
