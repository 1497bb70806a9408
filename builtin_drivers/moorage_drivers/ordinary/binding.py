"""What the driver takes of a server's tools (ORD-1, ORD-2)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.contract import ServerClaim, ServerConfig, TaskBinding
from moorage_drivers.ordinary.model import TaskToolset

DRIVER = "ordinary"
SECTION = "task_toolsets"


@dataclass(frozen=True, slots=True)
class Tools:
    """The raw tools of one task, as they are stored with it."""

    submit: str
    status: str
    cancel: str
    respond: str | None = None

    @classmethod
    def of(cls, binding: TaskBinding) -> "Tools":
        data = binding.data
        respond = data.get("respond_tool")
        return cls(
            str(data["submit_tool"]),
            str(data["status_tool"]),
            str(data["cancel_tool"]),
            str(respond) if respond is not None else None,
        )


def toolsets(server: ServerConfig) -> tuple[TaskToolset, ...]:
    """The server's section, which may hold one toolset or several."""
    block: Any = server.sections.get(SECTION)
    if block is None:
        return ()
    return (block,) if isinstance(block, TaskToolset) else tuple(block)


def claim_tools(server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
    """A group with a fault is withheld as a whole; ordinary tools are not affected by it."""
    groups = toolsets(server)
    roles = Counter(tool for group in groups for tool in group.roles.values())
    present = frozenset(tool_names)
    submit: dict[str, TaskBinding] = {}
    hidden: set[str] = set()
    errors: list[str] = []
    for group in groups:
        problem = _problem(group.roles, roles, present)
        if problem is None and any(group.name == other.task_name for other in submit.values()):
            problem = f"another task toolset has the name {group.name!r}, too"
        if problem is not None:
            errors.append(f"server {server.name!r}, task toolset {group.name!r}: {problem}")
            hidden.update(group.roles.values())
            continue
        hidden.update(tool for role, tool in group.roles.items() if role != "submit")
        data = {f"{role}_tool": tool for role, tool in group.roles.items()}
        # Over stdio the work lives in the thread's process, which only this replica has (TASK-19).
        sticky = server.transport == "stdio"
        submit[group.submit_tool] = TaskBinding(DRIVER, group.name, data, sticky=sticky)
    return ServerClaim(submit=submit, hidden=frozenset(hidden), errors=tuple(errors))


def _problem(group: Mapping[str, str], roles: Counter[str], present: Iterable[str]) -> str | None:
    shared = sorted(tool for tool in group.values() if roles[tool] > 1)
    if shared:
        return f"tool {shared[0]!r} has more than one role"
    missing = sorted(f"{tool!r} ({role}_tool)" for role, tool in group.items() if tool not in present)
    if missing:
        return f"the server has no tool {', '.join(missing)}; use its exact raw tool names"
    return None
