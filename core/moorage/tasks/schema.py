"""An answer against the JSON schema that a server's request gave (TASK-16).

The schema is untrusted: a regular expression or a web of references can keep a validator busy for ever,
and neither a thread nor a deadline within the process ends that. So it runs as a child process,
``python -m moorage.tasks.schema``, which reads ``{"schema": …, "answer": …}`` and writes its verdict.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from moorage.contract.errors import InvalidAnswer
from moorage.tasks.text import cut

_log = logging.getLogger(__name__)

_TIME_LIMIT_SECONDS = 10.0
_MESSAGE_LIMIT_CHARACTERS = 300


async def check_answer(request: Any, answer: Any) -> None:
    """Raises `InvalidAnswer`, naming the place in the answer, where it does not fit the request's schema.

    A schema that is none itself checks nothing: the server will judge the answer anyway.
    """
    schema = _schema_of(request)
    if schema is None:
        return
    verdict = await _judge(schema, answer)
    if (problem := verdict.get("problem")) is not None:
        raise InvalidAnswer(f"the answer does not fit the request's schema: {problem}")
    if (fault := verdict.get("fault")) is not None:
        _log.warning("an input request's schema cannot be used, the answer is not checked: %s", fault)


def _schema_of(request: Any) -> Any:
    if not isinstance(request, Mapping):
        return None
    schema = request.get("schema", request.get("requestedSchema"))
    return schema if isinstance(schema, Mapping | bool) else None


async def _judge(schema: Any, answer: Any) -> Mapping[str, Any]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    question = json.dumps({"schema": schema, "answer": answer}).encode()
    try:
        async with asyncio.timeout(_TIME_LIMIT_SECONDS):
            output, _ = await child.communicate(question)
    except TimeoutError:
        return {"problem": f"checking it took longer than {_TIME_LIMIT_SECONDS:g} seconds"}
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    try:
        verdict = json.loads(output)
    except ValueError:
        return {"fault": "the validator ended without a verdict"}
    return verdict if isinstance(verdict, dict) else {}


def verdict_on(schema: Any, answer: Any) -> dict[str, str]:
    """``problem``: the answer is wrong; ``fault``: the schema is. Runs in the child."""
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validators.validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        # An empty registry: a schema must never make the gateway fetch anything.
        error = next(iter(kind(schema, registry=Registry()).iter_errors(answer)), None)
    except (SchemaError, Unresolvable, RecursionError, ValueError) as exc:
        return {"fault": cut(f"{type(exc).__name__}: {exc}", _MESSAGE_LIMIT_CHARACTERS)}
    if error is None:
        return {}
    return {"problem": cut(f"{error.json_path}: {_reason(error)}", _MESSAGE_LIMIT_CHARACTERS)}


def _reason(error: Any) -> str:
    """What the schema wants there. The library's own messages quote the answer, which may be a secret."""
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return f"must have {', '.join(map(repr, missing))}"
        case "type":
            wanted = error.validator_value
            return f"must be of type {' or '.join(wanted) if isinstance(wanted, list) else wanted}"
        case "enum":
            return f"must be one of {json.dumps(error.validator_value)}"
        case "const":
            return f"must be {json.dumps(error.validator_value)}"
        case keyword if isinstance(error.validator_value, int | float | str):
            return f"breaks {keyword} {error.validator_value!r}"
        case keyword:
            return f"breaks {keyword}"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    json.dump(verdict_on(question["schema"], question["answer"]), sys.stdout)
