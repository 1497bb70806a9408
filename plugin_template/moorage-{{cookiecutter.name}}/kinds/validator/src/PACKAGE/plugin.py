"""What the gateway calls once at its start."""

from collections.abc import Iterable

from moorage.contract import GatewayContext, LaunchValidator, LaunchValidatorSpec, hookimpl

MOORAGE_API = "~={{ cookiecutter.moorage }}.0"
NAME = "{{ cookiecutter.name }}"


def _build(context: GatewayContext) -> LaunchValidator:
    from {{ cookiecutter.package }}.validator import {{ cookiecutter.title }}Validator, read

    return {{ cookiecutter.title }}Validator(read(context.settings.get("plugins", {}).get(NAME)))


@hookimpl
def moorage_launch_validators() -> Iterable[LaunchValidatorSpec]:
    return (LaunchValidatorSpec(NAME, _build),)
