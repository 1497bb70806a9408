"""What the core says to install for a name is what brings it (PLUG-1, PLUG-4)."""

import json
from importlib.resources import files

import pytest

from moorage.host import load_plugins
from moorage.settings import PluginSettings


@pytest.mark.req("PLUG-1", "PLUG-4")
def test_the_file_names_what_the_built_in_plugins_contribute_and_nothing_else() -> None:
    known = json.loads(files("moorage.host").joinpath("known_sections.json").read_text())
    host = load_plugins(PluginSettings())
    of = {report.name: report.distribution for report in host.reports}
    contributed = {
        "sections": {one.spec.name: of[one.plugin] for one in host.sections()},
        "drivers": {one.spec.name: of[one.plugin] for one in host.drivers()},
        "stores": {
            scheme: of[one.plugin]
            for one in host.stores()
            for scheme in one.spec.schemes
            if "+" not in scheme
        },
        "assistants": {one.spec.name: of[one.plugin] for one in host.assistants()},
        "sinks": {one.spec.name: of[one.plugin] for one in host.sinks()},
        "commands": {one.spec.name: of[one.plugin] for one in host.cli_groups()},
    }
    assert known == contributed
