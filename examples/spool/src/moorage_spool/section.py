"""The driver's section in a server's config."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """The spool folder, and the tool that puts jobs into it."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    folder: Path
    tool: str = "run"
