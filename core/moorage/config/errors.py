"""What a change of the extensions config can fail with. No message quotes a configured value."""

from collections.abc import Sequence

from moorage.contract import ConfigError, ConfigFault, Conflict


class ConfigRejected(ConfigError):
    """The submitted configuration is not acceptable; nothing was written. Answered with status 400."""

    def __init__(self, faults: Sequence[ConfigFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.where}: {fault.message}" for fault in self.faults))


class PreconditionFailed(Conflict):
    """The configuration is not the one that ``If-Match`` names any more (ADMIN-6). Status 412."""


class UnreadableConfig(Conflict):
    """The file on disk cannot be read or parsed, so it is not overwritten (CONF-7)."""


class ConfigWriteFailed(ConfigError):
    """The file could not be written or locked; the old content is intact (CONF-5)."""
