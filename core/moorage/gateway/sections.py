"""What sections do wrong is written down with their plugins (PLUG-5, PLUG-7)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moorage.accounts import Account
from moorage.contract import ConfigError, ConfigSection
from moorage.host import Contribution, PluginHost
from moorage.process_exit import EXITS


def accounted(one: Contribution[ConfigSection], host: PluginHost) -> ConfigSection:
    """The section, whose functions raise a `ConfigError` or an ordinary `Exception`, and nothing else but an
    exit of the process. Whoever calls them says what becomes of it; it is counted and told here."""
    account = host.account(one.plugin)
    calls: dict[str, Any] = {
        field: _accounted(call, f"the {field} of section {one.spec.name!r}", _WRONG.get(field), account)
        for field in ("load_model", "mask", "merge", "check")
        if (call := getattr(one.spec, field)) is not None
    }
    return replace(one.spec, **calls)


def _accounted(
    call: Callable[..., Any], what: str, wrong: Callable[[object], bool] | None, account: Account
) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        try:
            with account.call():
                answer = call(*arguments)
                if wrong is not None and wrong(answer):
                    raise TypeError(f"answered with {type(answer).__name__}")
                return answer
        except (ConfigError, *EXITS):
            raise
        except BaseException as error:
            # Without the error's own text, which may quote the section's values (CRED-9).
            account.told(f"{what} failed: {type(error).__name__}")
            if isinstance(error, Exception):
                raise
            raise RuntimeError(f"{what} raised {type(error).__name__}") from error

    return called


def _no_texts(answer: object) -> bool:
    return not (isinstance(answer, list | tuple) and all(isinstance(text, str) for text in answer))


_WRONG: dict[str, Callable[[object], bool]] = {
    "load_model": lambda answer: not callable(getattr(answer, "model_validate", None)),
    "check": _no_texts,
}
