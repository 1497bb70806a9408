"""Writes the calling user's header, or denies the call before anything is sent."""

from moorage.contract import CredentialDenied, GatewayContext, Next, Redactor, ToolCall, ToolResult

from {{ cookiecutter.package }}.section import Section

SECTION = "{{ cookiecutter.section }}"


class {{ cookiecutter.title }}Interceptor:
    """A credential interceptor: ``await follow(call)`` makes the call, at most once."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway

    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        section = call.server.sections[SECTION]
        assert isinstance(section, Section)
        value = section.users.get(call.principal.user_id) if call.principal else None
        source = f"{SECTION} of server {call.server.name!r}"
        if not value:
            raise CredentialDenied(f"{source}: no value of header {section.header!r} for the calling user")
        if self._gateway.has(Redactor):
            # So that no log and no error shows it, even where a server quotes it.
            self._gateway.service(Redactor).register(value)
        return await follow(call.with_header(section.header, value, source=source))
