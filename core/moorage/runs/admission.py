"""The gate that every run passes before anything of it exists (RUN-2, RUN-3)."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from moorage.accounts import Account
from moorage.contract.errors import AdmissionRejected
from moorage.contract.redaction import Redactor
from moorage.contract.runs import RunRequest, RunValidator
from moorage.process_exit import EXITS
from moorage.runs.redaction import check_metadata
from moorage.runs.secrets import Scrubber

log = logging.getLogger(__name__)

VALIDATOR_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class NamedValidator:
    """A run validator and the plugin that contributed it."""

    name: str
    plugin: str
    validator: RunValidator
    account: Account = field(default_factory=Account, compare=False)


class Admission:
    """The core's own rule first, then the validators in the order given (by precedence)."""

    def __init__(
        self,
        validators: Sequence[NamedValidator],
        *,
        timeout_seconds: float = VALIDATOR_TIMEOUT_SECONDS,
        redactor: Redactor | None = None,
    ) -> None:
        self._validators = validators
        self._redactor = redactor
        self._timeout_seconds = timeout_seconds

    async def admit(self, request: RunRequest) -> None:
        """Raises `AdmissionRejected`; a validator that fails to answer refuses the run (PLUG-7)."""
        if request.metadata is not None and not isinstance(request.metadata, Mapping):
            raise AdmissionRejected("metadata must be an object")
        check_metadata(request.metadata)
        scrubber = Scrubber(request.secrets, self._redactor)
        for named in self._validators:
            with _contained(named, scrubber), named.account.call():
                async with asyncio.timeout(self._timeout_seconds):
                    answer: object = await named.validator.validate(request)  # type: ignore[func-returns-value]
                _check_verdict(answer)


def _check_verdict(answer: object) -> None:
    # False, say, was meant as a refusal; to let the run pass would be the opposite.
    if answer is not None:
        raise TypeError(f"answered with {type(answer).__name__}; a verdict is None or AdmissionRejected")


@contextmanager
def _contained(named: NamedValidator, scrubber: Scrubber) -> Iterator[None]:
    """What a validator raises by mistake refuses the run, and says whose mistake it was.

    The text of the mistake stays in the log, since it may quote the request, and without secrets.
    """
    task = asyncio.current_task()
    cancelling = task.cancelling() if task else 0
    try:
        yield
    except (AdmissionRejected, *EXITS):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling() > cancelling:
            raise
        text = f"run validator {named.name!r} failed: {scrubber.error(error)}"
        named.account.failed(text)
        log.warning("plugin %r: %s", named.plugin, text)
        reason = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
        raise AdmissionRejected(
            f"the run validator {named.name!r} of plugin {named.plugin!r} {reason}, so the run is refused"
        ) from None
