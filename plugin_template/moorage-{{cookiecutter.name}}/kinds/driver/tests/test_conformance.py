"""Held to what Moorage asks of task drivers, over real HTTP, against a service that fails on demand."""

from collections.abc import Mapping
from typing import Any

from moorage.contract import GatewayContext, TaskDriver, TaskStatus
from moorage.testing import HttpDriverConformance, HttpReply, HttpRequest, Operation, Said
from moorage.testing.http_remote import HttpRemote

from {{ cookiecutter.package }}.driver import NAME, SECTION, STATES, {{ cookiecutter.title }}Driver
from {{ cookiecutter.package }}.section import Section

WORDS = {status: word for word, status in STATES.items()}


class Test{{ cookiecutter.title }}Driver(HttpDriverConformance):
    name = NAME
    input_required = False  # the protocol has no questions

    def build(self, gateway: GatewayContext, remote: HttpRemote) -> TaskDriver:
        return {{ cookiecutter.title }}Driver(gateway)

    def sections(self, remote: HttpRemote) -> Mapping[str, Any]:
        return {SECTION: Section(jobs_url=f"{remote.url}/jobs")}

    def route(self, request: HttpRequest) -> tuple[Operation, str | None] | None:
        match request.method, request.path.strip("/").split("/"):
            case "POST", ["jobs"]:
                return Operation.SUBMIT, None
            case "GET", ["jobs", job]:
                return Operation.STATUS, job
            case "DELETE", ["jobs", job]:
                return Operation.CANCEL, job
        return None

    def spell(self, said: Said) -> HttpReply:
        if said.status is TaskStatus.INPUT_REQUIRED:
            raise ValueError("there are no questions in this protocol")
        word = WORDS.get(said.status, said.status) if isinstance(said.status, TaskStatus) else said.status
        fields = {
            "id": said.remote_id,
            "state": word,
            "result": said.result,
            "error": said.error,
            "again_in": said.poll_after_seconds,
        }
        return HttpReply({key: value for key, value in fields.items() if value is not None})
