"""What plugins contribute to the gateway's life; one that fails costs only itself (PLUG-2, PLUG-7)."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moorage.contract import ConfigError, LifecycleSpec, MoorageError
from moorage.gateway.building import Builder
from moorage.host import Contribution
from moorage.process_exit import EXITS

log = logging.getLogger(__name__)

LIFECYCLE_SECONDS = 30.0
"""What entering or leaving one may take."""


@asynccontextmanager
async def entered(one: Contribution[LifecycleSpec], builder: Builder) -> AsyncIterator[None]:
    """Enter one contribution, and leave it when the block is left.

    One that raises or hangs is reported and counted, and the gateway goes on without it; in strict mode
    it ends the start with a `ConfigError`. What is a `MoorageError` ends the start in any case: it is
    raised on purpose.
    """
    account = builder.host.account(one.plugin)
    try:
        with account.call():
            life = one.spec.open(builder.context)
            async with asyncio.timeout(LIFECYCLE_SECONDS):
                await life.__aenter__()
    except (MoorageError, *EXITS):
        raise
    except BaseException as error:
        if _cancelled_from_outside(error):
            raise
        reason = _amiss(one, builder, "entered", error)
        if builder.strict:
            raise ConfigError(reason, where=f"plugin {one.plugin!r}") from error
        yield
        return
    try:
        yield
    finally:
        # Told of no exception: how the gateway ends is nothing that a plugin could mend.
        try:
            with account.call():
                async with asyncio.timeout(LIFECYCLE_SECONDS):
                    await life.__aexit__(None, None, None)
        except EXITS:
            raise
        except BaseException as error:
            if _cancelled_from_outside(error):
                raise
            _amiss(one, builder, "left", error)


def _cancelled_from_outside(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _amiss(one: Contribution[LifecycleSpec], builder: Builder, what: str, error: BaseException) -> str:
    told = f"no end within {LIFECYCLE_SECONDS:g} seconds" if isinstance(error, TimeoutError) else str(error)
    reason = f"life-cycle {one.spec.name!r} could not be {what}: {type(error).__name__}: {told}"
    builder.host.record_failure(one.plugin, reason)
    log.warning("plugin %r: %s", one.plugin, reason)
    return reason
