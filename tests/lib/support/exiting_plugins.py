"""Plugins whose objects call ``sys.exit``, each in a distribution of its own, and one that leaks (PLUG-7)."""

EXITING: dict[str, tuple[str, tuple[str, ...]]] = {
    # plugin → (source, what its failure must say)
    "exit_submit": (
        """
class Driver:
    def claim(self, server, tool_names):
        return ServerClaim()
    async def submit(self, call):
        sys.exit(3)

@hookimpl
def moorage_task_drivers():
    return [TaskDriverSpec("exit_submit", lambda context: Driver())]
""",
        ("task driver 'exit_submit'", "SystemExit"),
    ),
    "exit_status": (
        """
class Driver:
    def claim(self, server, tool_names):
        return ServerClaim()
    async def submit(self, call):
        return TaskHandle(call.task_id)
    async def get_status(self, ref):
        sys.exit(3)

@hookimpl
def moorage_task_drivers():
    return [TaskDriverSpec("exit_status", lambda context: Driver())]
""",
        ("task driver 'exit_status'", "SystemExit"),
    ),
    "exit_interceptor": (
        """
async def leave(call, follow):
    if call.tool == "exit":
        sys.exit(3)
    return await follow(call)

@hookimpl
def moorage_credential_interceptors():
    return [InterceptorSpec("leaving", 440, lambda context: leave)]
""",
        ("interceptor 'leaving'", "SystemExit"),
    ),
    "exit_sink": (
        """
class Sink:
    async def deliver(self, notification):
        sys.exit(3)

@hookimpl
def moorage_notification_sinks():
    return [SinkSpec("exit_sink", lambda context: Sink())]
""",
        ("sink 'exit_sink'", "SystemExit"),
    ),
    "exit_validator": (
        """
class Validator:
    async def validate(self, request):
        if "exit" in (request.metadata or {}):
            sys.exit(3)

@hookimpl
def moorage_run_validators():
    return [RunValidatorSpec("leaver", 500, lambda context: Validator())]
""",
        ("run validator 'leaver'", "SystemExit"),
    ),
    "exit_assistant": (
        """
class Bot:
    async def stream(self, run, input):
        sys.exit(3)
        yield
    async def state(self, thread_id, *, checkpoint_id=None):
        sys.exit(3)
    async def history(self, thread_id, *, limit=10, before=None):
        sys.exit(3)
        yield
    async def update_state(self, thread_id, values, *, as_node=None, checkpoint_id=None):
        sys.exit(3)
    async def delete_thread(self, thread_id):
        sys.exit(3)

@hookimpl
def moorage_assistants():
    return [AssistantSpec("gone", "Leaves.", lambda context: Bot())]
""",
        ("assistant 'gone'", "SystemExit"),
    ),
    "exit_authenticator": (
        """
class Doorman:
    async def authenticate(self, request):
        if "x-exit" in request.headers:
            sys.exit(3)

@hookimpl
def moorage_authenticators():
    return [AuthenticatorSpec("leaving-doorman", 400, lambda context: Doorman())]
""",
        ("authenticator", "SystemExit"),
    ),
    "exit_source": (
        """
class Source:
    async def tools(self, context):
        sys.exit(3)
    async def servers(self, *, probe=False):
        return ()
    async def reset(self):
        pass
    async def close_thread(self, user_id, thread_id):
        pass

@hookimpl
def moorage_tool_sources():
    return [ToolSourceSpec("gone-source", lambda context: Source())]
""",
        ("tool source 'gone-source'", "SystemExit"),
    ),
    "exit_hints": (
        """
class Hints:
    def hint(self, server, raw_name):
        sys.exit(3)

@hookimpl
def moorage_routing_hints():
    return [RoutingHintSpec("gone-hints", 600, lambda context: Hints())]
""",
        ("routing hints 'gone-hints'", "SystemExit"),
    ),
    "exit_build": (
        """
@hookimpl
def moorage_task_drivers():
    return [TaskDriverSpec("exit_build", lambda context: sys.exit(3))]
""",
        ("'exit_build' could not be built", "SystemExit"),
    ),
    "exit_section": (
        """
def load():
    from pydantic import BaseModel
    return type("Block", (BaseModel,), {})

@hookimpl
def moorage_config_sections():
    return [ConfigSection("exit_section", load, check=lambda *_: sys.exit(3))]
""",
        ("check of section 'exit_section'", "SystemExit"),
    ),
    "exit_lifecycle": (
        """
from contextlib import asynccontextmanager

@asynccontextmanager
async def enter(context):
    sys.exit(3)
    yield

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("leaving", 500, enter)]
""",
        ("life-cycle 'leaving'", "SystemExit"),
    ),
    "exit_task": (
        """
from contextlib import asynccontextmanager

async def leave(context):
    while not context.has(TaskSubmitter):
        await asyncio.sleep(0.01)
    sys.exit(3)

@asynccontextmanager
async def enter(context):
    task = asyncio.create_task(leave(context))
    yield

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("busy", 500, enter)]
""",
        ("ended a task of its own", "sys.exit(3)"),
    ),
}

# What it leaves behind: a task that no cancellation ends, threads, a process, an open file.
LEAKER = """
import subprocess, threading
from contextlib import asynccontextmanager

kept = []

async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

def wait():
    threading.Event().wait()

@asynccontextmanager
async def enter(context):
    kept.append(asyncio.create_task(stubborn(), name="leaked"))
    kept.append(asyncio.create_task(asyncio.to_thread(wait)))
    threading.Thread(target=wait, name="leaked-thread").start()
    kept.append(open(__file__))
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(["sleep", "120"], stdin=nowhere, stdout=nowhere, stderr=nowhere)
    (context.home / "leaked.pid").write_text(str(child.pid))
    kept.append(child)
    yield

@hookimpl
def moorage_lifecycle():
    return [LifecycleSpec("leaking", 500, enter)]
"""
