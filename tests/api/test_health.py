"""Health needs no key and tells the truth about the store."""

import httpx
import pytest
from support.api_fakes import FakeGateway
from support.http import serving

from moorage.contract import StoreUnavailable
from moorage_api.app import create_app


@pytest.mark.req("API-4")
async def test_readiness_follows_the_store_and_liveness_does_not() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        assert (await http.get("/readyz")).json() == {"status": "ok"}
        gateway.store.broken = StoreUnavailable("the database does not answer")
        answer = await http.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["detail"] == "the database does not answer"
        assert (await http.get("/healthz")).status_code == 200
        # Probes that want no body.
        assert (await http.head("/healthz")).status_code == 200
        assert (await http.head("/readyz")).status_code == 503
