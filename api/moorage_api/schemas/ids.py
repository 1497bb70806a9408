"""Ids and paging, shared by bodies and parameters."""

from typing import Annotated

from litestar.params import PathParameter, QueryParameter
from pydantic import StringConstraints

ID_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
_STRICT = r"^[A-Za-z0-9_-]{1,64}\Z"
"""What is checked: Python's ``$`` also matches before a final line break, ECMA's has no ``\\Z``."""
_ID_TEXT = "1 to 64 of letters, digits, `-` and `_`."

ThreadId = Annotated[
    str, PathParameter(pattern=_STRICT, schema_extra={"pattern": ID_PATTERN}, description=_ID_TEXT)
]
RunId = Annotated[str, PathParameter(max_length=128)]
TaskId = Annotated[str, PathParameter(max_length=128)]
NewThreadId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="At most this many.")]
Offset = Annotated[int, QueryParameter(ge=0, le=1_000_000_000, description="Skip this many.")]
Cursor = Annotated[
    str | None, QueryParameter(max_length=512, description="Where the previous page said to go on.")
]
Flag = Annotated[bool, QueryParameter()]
Select = Annotated[list[str] | None, QueryParameter(max_items=50, description="Only these fields.")]
AnyId = Annotated[str, PathParameter(max_length=255)]
