"""The config section ``task_toolsets`` (ORD-1)."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

RawName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"\S")]


class TaskToolset(BaseModel):
    """Which raw tools of a server submit, poll, cancel and answer one kind of task."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: RawName = Field(description="The task's name, as people and agents see it.")
    submit_tool: RawName = Field(description="Starts the work; replaced by a durable wrapper.")
    status_tool: RawName = Field(description="Tells the state; hidden from agents.")
    cancel_tool: RawName = Field(description="Stops the work; hidden from agents.")
    respond_tool: RawName | None = Field(
        default=None, description="Answers a request for input; hidden from agents."
    )

    @property
    def roles(self) -> dict[str, str]:
        """Role → raw tool name."""
        roles = {"submit": self.submit_tool, "status": self.status_tool, "cancel": self.cancel_tool}
        return roles | ({"respond": self.respond_tool} if self.respond_tool is not None else {})

    @model_validator(mode="after")
    def _one_role_each(self) -> "TaskToolset":
        tools = list(self.roles.values())
        twice = sorted({tool for tool in tools if tools.count(tool) > 1})
        if twice:
            raise ValueError(f"one raw tool cannot have two roles: {', '.join(map(repr, twice))}")
        return self
