"""What the gateway calls once at its start."""

from collections.abc import Iterable

from moorage.contract import Assistant, AssistantSpec, GatewayContext, hookimpl

MOORAGE_API = "~={{ cookiecutter.moorage }}.0"
NAME = "{{ cookiecutter.name }}"


def _build(context: GatewayContext) -> Assistant:
    from {{ cookiecutter.package }}.assistant import {{ cookiecutter.title }}Assistant

    return {{ cookiecutter.title }}Assistant()


@hookimpl
def moorage_assistants() -> Iterable[AssistantSpec]:
    return (AssistantSpec(NAME, "Counts the words of what it is told.", _build),)
