"""The section ``routing``, of a server or of a tool."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Routing(BaseModel):
    """``{mode: off|prefer, priority: 0..100, keywords: []}`` (ROUTE-1). None: not set here, inherited.

    ``priority`` is kept as written, so that a warning can name it, and clamped where it is used.
    """

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    mode: Literal["off", "prefer"] | None = None
    priority: Annotated[int, Field(strict=True)] | None = None
    keywords: list[str] | None = None
