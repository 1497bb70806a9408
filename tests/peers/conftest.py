"""Environments of public servers, shared by all workers of a test session."""

import pytest
from support.peers import Environments


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Environments:
    base = tmp_path_factory.getbasetemp()
    return Environments((base if worker_id == "master" else base.parent) / "peers")
