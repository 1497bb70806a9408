"""The conformance suite of task drivers (DX-2)."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from moorage.contract import GatewayContext, ServerConfig, TaskDriver
from moorage.testing.checks import Shortfall, Suite
from moorage.testing.context import gateway_context, server_config
from moorage.testing.driver_bench import CANARY, DriverBench
from moorage.testing.driver_checks.cancelling import CancelChecks
from moorage.testing.driver_checks.conduct import ConductChecks
from moorage.testing.driver_checks.polling import PollChecks
from moorage.testing.driver_checks.submitting import SubmitChecks
from moorage.testing.remote import FaultyRemote, Operation, Said, Trouble

R = TypeVar("R", bound=FaultyRemote, default=FaultyRemote)


class DriverConformance(Suite, SubmitChecks, PollChecks, CancelChecks, ConductChecks, Generic[R]):
    """Holds a task driver to the contract, against a remote that fails on demand.

    Subclass it as ``class TestMyDriver(DriverConformance)`` and say four things: how the driver is built on
    a remote (`build`), how the remote's protocol spells a reply (`spell`), what breaks that protocol
    (`garbled`), and what trouble looks like in it (`fail`). The driver reaches the remote through
    `FaultyRemote.exchange`; `HttpDriverConformance` and `ToolDriverConformance` put a real HTTP server and
    a gateway's `ToolCaller` in between. What a protocol does not have is switched off by the flags below.
    """

    name: str = ""
    """The driver's name in its `TaskDriverSpec`."""
    server_name = "conformance-server"
    tools: Sequence[str] = ("run",)
    """The raw tool names of the server that the driver claims from."""
    submit_tool: str | None = None
    """The tool that starts the work; the first that the driver claims, unless given."""
    arguments: Mapping[str, Any] = {"label": CANARY}
    """What a caller hands to the tool. Somewhere in it stands `moorage.testing.driver_bench.CANARY`."""
    poll_hints = True
    ids_in_replies = True
    input_required = True
    done_at_once = True
    """A submit may be answered with a job that has ended already."""
    refuses = True
    """The remote can turn down a submit for good."""
    forgets = True
    """The remote can say that it does not know a job."""
    cancels_by_acknowledgement = True
    """A cancel may be acknowledged while the job still runs."""

    def build(self, gateway: GatewayContext, remote: R) -> TaskDriver:
        """The driver, on this remote."""
        raise NotImplementedError(f"{type(self).__name__} must say how its driver is built: build()")

    def spell(self, said: Said) -> Any:
        """A reply as the protocol writes it. Raise `ValueError` for what it cannot say."""
        raise NotImplementedError(f"{type(self).__name__} must say how its protocol spells a reply: spell()")

    def garbled(self, said: Said) -> Sequence[Any]:
        """Replies to ``said.operation`` that break the protocol, without a readable job id."""
        return ()

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        """What trouble looks like: a reply, or an exception that the transport raises. None for the usual
        `NotReached` and `ReplyLost`, both a `ConnectionError`."""
        return None

    def sections(self, remote: R) -> Mapping[str, Any]:
        """The validated config sections of the server, by name."""
        return {}

    def server(self, remote: R) -> ServerConfig:
        """The server, as the gateway would hand it to ``claim``."""
        return server_config(self.server_name, sections=self.sections(remote))

    def prepare(self, gateway: GatewayContext, remote: R) -> None:
        """Provide what the driver asks of the gateway."""

    def open_remote(self) -> AbstractAsyncContextManager[R]:
        """The remote while a check runs."""
        return self._remote()

    @asynccontextmanager
    async def _remote(self) -> AsyncIterator[R]:
        yield cast("R", FaultyRemote(self.spell, self.fail))

    @asynccontextmanager
    async def _built(self, home: Path, remote: R) -> AsyncIterator[tuple[GatewayContext, TaskDriver]]:
        gateway = gateway_context(home, servers=(self.server(remote),))
        self.prepare(gateway, remote)
        driver = self.build(gateway, remote)
        try:
            yield gateway, driver
        finally:
            close = getattr(driver, "aclose", None)
            if close is not None:
                await close()

    @asynccontextmanager
    async def _bench(self) -> AsyncIterator[DriverBench]:
        with tempfile.TemporaryDirectory() as folder:
            async with self.open_remote() as remote, self._built(Path(folder), remote) as (gateway, driver):

                @asynccontextmanager
                async def rebuilt() -> AsyncIterator[TaskDriver]:
                    async with self._built(Path(folder), remote) as (_, again):
                        yield again

                server = self.server(remote)
                claimed = driver.claim(server, list(self.tools))
                if not claimed.submit:
                    raise Shortfall(f"the driver claims no tool of {list(self.tools)}: {claimed.errors}")
                tool = self.submit_tool or next(iter(claimed.submit))
                yield DriverBench(
                    remote=remote,
                    gateway=gateway,
                    server=server,
                    tools=tuple(self.tools),
                    driver=driver,
                    binding=claimed.submit[tool],
                    arguments=self.arguments,
                    rebuilt=rebuilt,
                )
