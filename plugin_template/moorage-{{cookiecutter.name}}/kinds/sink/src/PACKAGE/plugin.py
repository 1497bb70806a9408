"""What the gateway calls once at its start."""

from collections.abc import Iterable

from moorage.contract import GatewayContext, NotificationSink, SinkSpec, hookimpl

MOORAGE_API = "~={{ cookiecutter.moorage }}.0"
NAME = "{{ cookiecutter.name }}"


def _build(context: GatewayContext) -> NotificationSink | None:
    options = context.settings.get("plugins", {}).get(NAME)
    if options is None:
        return None  # not configured: not in force
    from {{ cookiecutter.package }}.sink import {{ cookiecutter.title }}Sink, read

    return {{ cookiecutter.title }}Sink(read(options).path)


@hookimpl
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    return (SinkSpec(NAME, _build),)
