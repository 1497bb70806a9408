"""Which URLs the API may register (LAUNCH-8)."""

import pytest

from moorage.contract import LaunchRefused, LaunchRequest
from moorage_plugins.launch_policy.remote import UrlRules
from moorage_plugins.launch_policy.settings import LaunchSettings

pytestmark = pytest.mark.req("LAUNCH-8")


def refusal(url: str | None, *hosts: str) -> str | None:
    """The message, or None where it may be called."""
    try:
        UrlRules(LaunchSettings(hosts=frozenset(hosts))).validate(LaunchRequest("wiki", "http", url=url))
    except LaunchRefused as refused:
        return str(refused)
    return None


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/mcp",
        "http://127.0.0.1:8931/mcp",
        "http://[::1]:80/",
        "http://10.0.0.5/mcp",
        "https://example.com:8443/mcp?key=${KEY}",
        "HTTPS://EXAMPLE.com/",
        "http://localhost/mcp",
        "https://bücher.example/mcp",
        "http://metadata.example.com/",
    ],
)
def test_ordinary_servers_pass(url: str) -> None:
    assert refusal(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://169.254.1.1/",
        "http://2852039166/",
        "http://0xA9FEA9FE/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fe80::1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://metadata.google.internal/",
        "http://METADATA.google.internal./",
        "http://100.100.100.200/",
        "http://169.254.169.254./",
        "http://169。254。169。254/",
        "http://%31%36%39.254.169.254/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://168.63.129.16/",
    ],
)
def test_link_local_and_metadata_addresses_are_refused_in_every_spelling(url: str) -> None:
    said = refusal(url)
    assert said is not None
    assert "'wiki'" in said
    assert "launch_policy.hosts" in said


def test_an_operator_can_allow_one() -> None:
    assert refusal("http://169.254.169.254/mcp", "169.254.169.254") is None
    assert refusal("http://[fe80::1]/mcp", "fe80::1") is None
    assert refusal("http://169.254.1.1/mcp", "169.254.169.254") is not None


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:x",
        "//example.com/mcp",
        "example.com/mcp",
        "http://",
        "http:///mcp",
        "http://u@example.com/",
        "http://u:the-secret@example.com/",
        "http://[",
        "http://a b/",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://example.com\\@169.254.169.254/",
        "http://${HOST}/mcp",
        "http://$HOST/mcp",
        "${URL}",
        "http://${X:-169.254.169.254}/",
        "http://x\n.example/",
    ],
)
def test_what_cannot_be_judged_is_refused_and_never_quoted(url: str | None) -> None:
    said = refusal(url)
    assert said is not None
    assert "'wiki'" in said
    assert "the-secret" not in said
