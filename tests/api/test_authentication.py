"""Who gets in (API-2)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import pytest
from support.api_fakes import FakeGateway
from support.http import serving
from support.routes import operations

from moorage.accounts import Account
from moorage.contract import AuthenticationFailed, AuthRequest, ConfigError, Principal
from moorage_api.app import create_app
from moorage_api.settings import ApiSettings

ADMIN_KEY = "an-admin-key-for-tests"
EXEMPT = {("get", "/healthz"), ("get", "/readyz")}

pytestmark = pytest.mark.req("API-2")


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def http(gateway: FakeGateway) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(gateway.open, ApiSettings(admin_key=ADMIN_KEY))
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer moorage_wrong"},
        {"X-Api-Key": "moorage_wrong"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer"},
    ],
    ids=["none", "wrong bearer", "wrong key", "basic", "empty bearer"],
)
async def test_every_route_but_the_exempt_answers_401_without_a_valid_key(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    closed = [one for one in await operations(http) if (one.method, one.path) not in EXEMPT]
    assert len(closed) > 20
    for one in closed:
        answer = await http.request(one.method, one.at(), headers=headers, content=b"{not even json")
        assert answer.status_code == 401, (one.method, one.path, answer.text)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


async def test_other_methods_of_closed_routes_reveal_nothing_but_themselves(http: httpx.AsyncClient) -> None:
    for path in ("/api/threads", "/api/plugins"):
        assert (await http.options(path)).status_code == 401
        assert (await http.put(path)).status_code == 405


@pytest.mark.parametrize("form", ["bearer", "api key"])
async def test_keys_of_users_and_their_roles(
    http: httpx.AsyncClient, gateway: FakeGateway, form: str
) -> None:
    def headers(key: str) -> dict[str, str]:
        return {"Authorization": f"bearer {key}"} if form == "bearer" else {"X-Api-Key": key}

    user = await gateway.store.keys.issue("alice", "user")
    admin = await gateway.store.keys.issue("root", "admin")
    scraper = await gateway.store.keys.issue("prometheus", "metrics")
    assert (await http.get("/api/mcp/tools", headers=headers(user))).status_code == 200
    assert (await http.get("/api/mcp/tools", headers=headers(admin))).status_code == 200
    for key in (user, scraper):
        answer = await http.get("/api/plugins", headers=headers(key))
        assert answer.status_code == 403
        assert "admin" in answer.json()["detail"]
    assert (await http.get("/api/mcp/tools", headers=headers(scraper))).status_code == 403
    for key in (admin, ADMIN_KEY):
        assert (await http.get("/api/plugins", headers=headers(key))).status_code == 200


async def test_every_admin_route_refuses_a_user(http: httpx.AsyncClient, gateway: FakeGateway) -> None:
    user = {"X-Api-Key": await gateway.store.keys.issue("alice", "user")}
    for path in ("/api/plugins", "/api/mcp/servers"):
        assert (await http.get(path, headers=user)).status_code == 403
    assert (await http.post("/api/mcp/cache/reset", headers=user)).status_code == 403


async def test_a_revoked_key_is_no_key(http: httpx.AsyncClient, gateway: FakeGateway) -> None:
    keys = gateway.store.keys
    headers = {"X-Api-Key": await keys.issue("alice", "user")}
    assert (await http.get("/api/mcp/tools", headers=headers)).status_code == 200
    for digest, record in keys.records.items():
        keys.records[digest] = replace(record, revoked_at=datetime.now(UTC))
    assert (await http.get("/api/mcp/tools", headers=headers)).status_code == 401


async def test_keys_are_stored_as_hashes_only(gateway: FakeGateway) -> None:
    key = await gateway.store.keys.issue("alice", "user")
    assert key.startswith("moorage_")
    assert len(key) >= 40
    assert key not in repr(gateway.store.keys)


class Tickets:
    """An authenticator that knows one ticket."""

    async def authenticate(self, request: AuthRequest) -> Principal | None:
        ticket = request.headers.get("x-ticket")
        if ticket is None:
            return None
        if ticket != "good":
            raise AuthenticationFailed("no such ticket")
        return Principal("ticket-holder", frozenset({"admin"}))


class Broken:
    async def authenticate(self, request: AuthRequest) -> Principal | None:
        raise RuntimeError("it says: s3cr3t-value")


def _contributed(*authenticators: object) -> SimpleNamespace:
    contributions = [
        SimpleNamespace(plugin="tickets", spec=SimpleNamespace(name="t", build=lambda _, one=one: one))
        for one in authenticators
    ]
    return SimpleNamespace(authenticators=lambda: contributions, reports=(), as_dicts=list, account=Account)


async def test_an_authenticator_of_a_plugin_is_asked() -> None:
    gateway = FakeGateway(host=_contributed(Tickets()))
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/api/plugins", headers={"X-Ticket": "good"})).status_code == 200
        wrong = await http.get("/api/plugins", headers={"X-Ticket": "bad"})
        assert (wrong.status_code, wrong.json()["detail"]) == (401, "no such ticket")
        assert (await http.get("/api/plugins")).status_code == 401


async def test_an_authenticator_that_breaks_lets_nobody_in_and_says_nothing() -> None:
    gateway = FakeGateway(host=_contributed(Broken(), Tickets()))
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        answer = await http.get("/api/plugins", headers={"X-Ticket": "good"})
        assert answer.status_code == 500
        assert "s3cr3t-value" not in answer.text
        assert "tickets" in answer.json()["detail"]


async def test_without_authentication_only_this_machine_may_call() -> None:
    gateway = FakeGateway()
    app = create_app(gateway.open, ApiSettings(authentication=False))
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/api/plugins")).status_code == 200
        assert (await http.get("/api/plugins", headers={"Origin": url})).status_code == 200
        foreign = await http.get("/api/plugins", headers={"Origin": "https://elsewhere.example"})
        assert foreign.status_code == 403
        rebound = await http.get("/api/plugins", headers={"Host": "elsewhere.example"})
        assert rebound.status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example"])
def test_listening_beyond_loopback_without_authentication_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="without authentication"):
        create_app(FakeGateway().open, ApiSettings(host=host, authentication=False))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_needs_no_authentication(host: str) -> None:
    create_app(FakeGateway().open, ApiSettings(host=host, authentication=False))
