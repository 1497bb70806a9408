"""The driver's section in a server's config."""

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Where the jobs are, and the tool that starts them."""

    # Unknown keys are kept, and warned about with the nearest known name.
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    jobs_url: str
    token: str | None = Field(default=None, repr=False)
    tool: str = "run"
    """The server's tool that becomes a durable task."""
