"""Tells an exit of the process from a plugin's own ``sys.exit`` (PLUG-7)."""

import functools
import signal
from types import CodeType

EXITS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What passes through containment outside an `Account.call`, which sorts out a plugin's own `SystemExit`."""


class SystemExitRaised(RuntimeError):
    """A plugin's own code raised `SystemExit`: a fault of the plugin like any other."""

    def __init__(self, code: object) -> None:
        super().__init__(f"it called sys.exit({'' if code is None else repr(code)})")


def is_exit(error: BaseException) -> bool:
    """Whether the error ends the process, or a coroutine that is being closed, and so is nobody's fault.

    A `SystemExit` ends the process where a signal handler raised it, which merely interrupted whose code was
    running at that moment.
    """
    if isinstance(error, SystemExit):
        return _of_signal_handler(error)
    return isinstance(error, EXITS)


def _of_signal_handler(error: SystemExit) -> bool:
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _code(handler: object) -> CodeType | None:
    """The code that runs where the handler is called; None where there is no Python code to see."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not callable(handler):
        return None
    for one in (handler, type(handler).__call__):
        code = getattr(getattr(one, "__func__", one), "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None
