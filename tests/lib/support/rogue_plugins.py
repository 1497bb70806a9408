"""Plugins that load well and whose objects then misbehave, each in a distribution of its own (PLUG-7)."""

from pathlib import Path

from support.exiting_plugins import EXITING, LEAKER
from support.plugin_dists import install

_START = "import asyncio, sys, time\nfrom moorage.contract import *\n"

ROGUES: dict[str, tuple[str, tuple[str, ...]]] = {
    # plugin → (source, what its failure must say)
    "rogue_driver": (
        """
class Driver:
    def claim(self, server, tool_names):
        return ServerClaim()
    async def submit(self, call):
        over = TaskSnapshot(status=TaskStatus.COMPLETED, result=1)
        return TaskHandle(call.task_id, over) if call.arguments.get("over") else TaskHandle(call.task_id)
    async def get_status(self, ref):
        raise ZeroDivisionError("no status today")
    async def cancel(self, ref):
        raise ZeroDivisionError("no cancel today")

@hookimpl
def moorage_task_drivers():
    return [TaskDriverSpec("rogue", lambda context: Driver())]
""",
        ("task driver 'rogue'", "ZeroDivisionError"),
    ),
    "rogue_interceptor": (
        """
async def hang(call, follow):
    await asyncio.Event().wait()

@hookimpl
def moorage_credential_interceptors():
    return [InterceptorSpec("hanging", 450, lambda context: hang, timeout_seconds=0.1)]
""",
        ("interceptor 'hanging'", "took more than 0.1 seconds"),
    ),
    "rogue_sink": (
        """
class Sink:
    async def deliver(self, notification):
        return "delivered, trust me"

@hookimpl
def moorage_notification_sinks():
    return [SinkSpec("rogue_sink", lambda context: Sink())]
""",
        ("sink 'rogue_sink'", "str"),
    ),
    "rogue_validator": (
        """
class Validator:
    async def validate(self, request):
        if "poke" in (request.metadata or {}):
            raise LookupError("what now")

@hookimpl
def moorage_run_validators():
    return [RunValidatorSpec("nervous", 500, lambda context: Validator())]
""",
        ("run validator 'nervous'", "LookupError"),
    ),
    "rogue_assistant": (
        """
class Bot:
    async def stream(self, run, input):
        raise RuntimeError("out of words")
        yield
    async def state(self, thread_id, *, checkpoint_id=None):
        raise BufferError("no memory")
    async def history(self, thread_id, *, limit=10, before=None):
        return
        yield

@hookimpl
def moorage_assistants():
    return [AssistantSpec("mute", "Says nothing.", lambda context: Bot())]
""",
        ("assistant 'mute'", "RuntimeError"),
    ),
    "rogue_authenticator": (
        """
class Doorman:
    async def authenticate(self, request):
        raise OSError(request.headers.get("authorization"))

@hookimpl
def moorage_authenticators():
    return [AuthenticatorSpec("doorman", 500, lambda context: Doorman())]
""",
        ("authenticator", "OSError"),
    ),
    "rogue_source": (
        """
class Source:
    async def tools(self, context):
        raise KeyError("tools")
    async def servers(self, *, probe=False):
        return ()
    async def reset(self):
        pass
    async def close_thread(self, user_id, thread_id):
        pass

@hookimpl
def moorage_tool_sources():
    return [ToolSourceSpec("empty-handed", lambda context: Source())]
""",
        ("tool source 'empty-handed'", "KeyError"),
    ),
    "rogue_hints": (
        """
class Hints:
    def hint(self, server, raw_name):
        return 42

@hookimpl
def moorage_routing_hints():
    return [RoutingHintSpec("odd", 500, lambda context: Hints())]
""",
        ("routing hints 'odd'", "no hint"),
    ),
    "rogue_build": (
        """
def build(context):
    raise TypeError("cannot build")

@hookimpl
def moorage_task_drivers():
    return [TaskDriverSpec("unbuilt", build)]
""",
        ("'unbuilt' could not be built", "cannot build"),
    ),
    "rogue_lifecycle": (
        """
from contextlib import asynccontextmanager

@asynccontextmanager
async def enter(context):
    raise ValueError("no way in")
    yield

@asynccontextmanager
async def leave(context):
    yield
    raise ValueError("no way out")

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("enter", 500, enter), LifecycleSpec("leave", 501, leave)]
""",
        ("life-cycle 'enter'", "no way in"),
    ),
    "rogue_blocker": (
        """
from contextlib import asynccontextmanager

async def block():
    await asyncio.sleep(0)
    time.sleep(2.5)

@asynccontextmanager
async def enter(context):
    task = asyncio.create_task(block())
    yield
    await task

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("blocking", 900, enter)]
""",
        ("blocked the event loop", "block"),
    ),
    **EXITING,
}

# Calls the rogues from inside, as the gateway's own parts would: tasks that are over, polled and refused, and
# calls through the chain.
PROVOKER = (
    _START
    + """
from contextlib import asynccontextmanager

WHO = CallContext(principal=Principal("somebody"))

async def answered(call):
    return ToolResult(())

async def provoke(context):
    while not context.has(TaskSubmitter):
        await asyncio.sleep(0.01)
    submitter, runner = context.service(TaskSubmitter), context.service(InterceptorRunner)
    server = context.extensions.current().servers["idle"]
    for over in (True, False):
        await submitter.submit(
            server="idle", binding=TaskBinding("rogue", "t"), arguments={"over": over}, context=WHO
        )
    for driver in ("exit_submit", "exit_status"):
        try:
            await submitter.submit(
                server="idle", binding=TaskBinding(driver, "t"), arguments={}, context=WHO
            )
        except PluginError:
            pass
    for tool in ("t", "t", "exit"):
        call = ToolCall(server, tool, {}, Headers(), "call", WHO.principal)
        try:
            await runner.run(call, answered)
        except PluginError:
            pass
    context.service(RoutingHintProvider).hint(server, "t")

@asynccontextmanager
async def enter(context):
    task = asyncio.create_task(provoke(context))
    yield
    await task

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("provoker", 800, enter)]
"""
)


def install_rogues(folder: Path) -> None:
    """All of `ROGUES`, one that provokes them once the gateway runs, and one that leaves things behind."""
    for name, (source, _) in ROGUES.items():
        install(folder, name, _START + source)
    install(folder, "provoker", PROVOKER)
    install(folder, "leaker", _START + LEAKER)
