"""Every error of Moorage, in one tree.

::

    MoorageError
    ├── ConfigError              settings or extensions config: names file, place and remedy
    ├── PluginError              a plugin object misbehaved; names the plugin
    │   └── PluginTimeout        it did not answer within its deadline
    ├── DriverError              a task driver's call went wrong
    │   ├── TransientDriverError   worth another try (TASK-8)
    │   ├── ProtocolViolation      the remote broke the contract: permanent (TASK-9)
    │   ├── SubmitRejected         the remote certainly got or accepted nothing (TASK-22)
    │   └── NotSupported           this binding has no such operation
    ├── CredentialDenied         an interceptor refused the call, nothing was sent (CRED-4, 5)
    ├── LaunchRefused            a launch validator refused a server (LAUNCH)
    ├── AdmissionRejected        a run validator refused a run, nothing exists (RUN-2)
    ├── InvalidUpdate            an assistant cannot take a state update
    ├── AuthenticationFailed     credentials were given and are wrong
    ├── InvalidAnswer            an answer to a task does not fit what was asked (TASK-16)
    ├── NotFound                 no such thing, or it belongs to somebody else
    ├── Conflict                 the request contradicts the present state
    │   ├── RemoteTaskConflict     another task already owns the remote handle (TASK-5)
    │   ├── ThreadBusy             the thread has an active run
    │   └── AmbiguousName          several things match; lists them (TASK-20)
    ├── ServerUnavailable        an MCP server could not be reached, started or asked
    └── StoreUnavailable         no durable store, or it cannot be reached

No message of these quotes a secret (CRED-9).
"""

from collections.abc import Sequence


class MoorageError(Exception):
    """Base of all errors that Moorage raises on purpose."""


class ConfigError(MoorageError):
    """A setting or the extensions config is wrong.

    ``where`` is a file, optionally with a place in it (``moorage.toml: tasks.lease_seconds``).
    """

    def __init__(self, message: str, *, where: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.reason = message


class PluginError(MoorageError):
    """A plugin's object raised, hung or answered with the wrong type (PLUG-7)."""

    def __init__(self, message: str, *, plugin: str) -> None:
        super().__init__(f"plugin {plugin!r}: {message}")
        self.plugin = plugin


class PluginTimeout(PluginError):
    """A plugin's object did not answer within its deadline (PLUG-7)."""


class DriverError(MoorageError):
    """A task driver's call went wrong."""


class TransientDriverError(DriverError):
    """The call failed in a way that is worth another try (TASK-8, ORD-4)."""


class ProtocolViolation(DriverError):
    """The remote broke the contract; the task fails permanently (TASK-9, BOUND-2).

    ``remote_id``: the remote task's id where it can still be read, so that a submit can be compensated
    (TASK-23). ``code``: a machine-readable reason, stored as ``error_code``.
    """

    def __init__(
        self, message: str, *, remote_id: str | None = None, code: str = "protocol_violation"
    ) -> None:
        super().__init__(message)
        self.remote_id = remote_id
        self.code = code


class SubmitRejected(DriverError):
    """The remote certainly got nothing, or answered that it accepted nothing: no task exists (TASK-22)."""


class NotSupported(DriverError):
    """This driver or binding has no such operation."""


class CredentialDenied(MoorageError):
    """An interceptor refused the call before anything was sent (CRED-4, CRED-5)."""


class LaunchRefused(MoorageError):
    """A launch validator refused what a server would start; names the server and the flag, never a value."""


class AdmissionRejected(MoorageError):
    """A run validator refused the run; nothing was created (RUN-2). Answered with status 422."""


class InvalidUpdate(MoorageError):
    """An assistant cannot take a state update; never quotes the values. Answered with status 422."""


class AuthenticationFailed(MoorageError):
    """The caller gave credentials and they are wrong."""


class InvalidAnswer(MoorageError):
    """An answer to an ``input_required`` task does not fit what was asked, or is too large (TASK-16)."""


class NotFound(MoorageError):
    """There is no such thing, or it belongs to somebody else (API-2)."""


class Conflict(MoorageError):
    """The request contradicts the present state."""


class RemoteTaskConflict(Conflict):
    """Another task already owns the remote handle; that task is untouched (TASK-5)."""

    def __init__(self, existing_task_id: str) -> None:
        super().__init__(f"the remote task is already tracked as task {existing_task_id!r}")
        self.existing_task_id = existing_task_id


class ThreadBusy(Conflict):
    """The thread has an active run."""


class AmbiguousName(Conflict):
    """A name matches several things (TASK-20)."""

    def __init__(self, name: str, matches: Sequence[str]) -> None:
        super().__init__(f"{name!r} matches several: {', '.join(matches)}")
        self.matches = tuple(matches)


class ServerUnavailable(MoorageError):
    """An MCP server could not be reached, started, or asked within its time.

    ``sent`` is false where nothing can have reached the tool. ``http_status``: what the server answered
    instead, where it was an HTTP error; 401 says that it did nothing and that the credential is to be
    renewed (CRED-3).
    """

    def __init__(
        self, message: str, *, server: str, sent: bool = True, http_status: int | None = None
    ) -> None:
        super().__init__(f"server {server!r}: {message}")
        self.server = server
        self.sent = sent
        self.http_status = http_status


class StoreUnavailable(MoorageError):
    """There is no durable store, or it cannot be reached (TASK-14)."""
