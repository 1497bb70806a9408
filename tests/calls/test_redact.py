"""Known secrets never come back in a text (CRED-9)."""

import base64
import json
import threading
import time
from urllib.parse import quote

import pytest

from moorage.calls.redact import MASK, SHORTEST, SecretRegistry

pytestmark = pytest.mark.req("CRED-9")


def registry(*secrets: str) -> SecretRegistry:
    made = SecretRegistry()
    for secret in secrets:
        made.register(secret)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing here", "nothing here"),
        ("", ""),
        ("token=s3cret-value;", "token=***;"),
        ("s3cret-value", "***"),
        ("s3cret-values3cret-value!", "******!"),
        ("xs3cret-value-and-more", "x***"),
        ("s3cret-val ue", "s3cret-val ue"),
    ],
)
def test_secrets_are_replaced_and_nothing_else(text: str, expected: str) -> None:
    assert registry("s3cret-value", "s3cret-value-and-more").redact(text) == expected


def test_short_values_are_left_alone() -> None:
    made = registry("a" * (SHORTEST - 1), "", "b" * SHORTEST)
    assert made.redact("aaaaaaa bbbbbbbb") == f"aaaaaaa {MASK}"


@pytest.mark.parametrize(
    "quoted",
    [
        lambda s: quote(s, safe=""),
        lambda s: json.dumps({"k": s}),
        lambda s: f"MCP_API_KEY={s}",
        lambda s: s.encode().decode("latin-1"),
    ],
)
def test_a_secret_is_found_however_it_is_spelled(quoted: object) -> None:
    secret = 'p/ss"w+rd\\ &=end'
    shown = registry(secret).redact(quoted(secret))  # type: ignore[operator]
    assert MASK in shown
    assert "w+rd" not in shown
    assert "w%2Brd" not in shown


def test_an_authorization_value_is_known_without_its_scheme() -> None:
    basic = base64.b64encode(b"user:pass-of-user").decode()
    made = registry("Bearer tok-123456789", f"Basic {basic}")
    assert made.redact("invalid token tok-123456789") == "invalid token ***"
    assert made.redact("login pass-of-user failed") == "login *** failed"
    assert made.redact(f"saw {basic}") == "saw ***"


def test_a_piece_at_a_cut_end_is_found() -> None:
    made = registry("abcdefghijklmnop")
    assert made.redact("ijklmnop was refused") == "*** was refused"
    assert made.redact("refused: abcdefghi") == "refused: ***"
    assert made.redact("klmnop was refused") == "klmnop was refused"  # too short to be told apart


def test_passing_secrets_are_bounded_and_lasting_ones_stay() -> None:
    made = SecretRegistry(keep=10)
    made.register("lasting-secret")
    for number in range(100):
        made.register(f"passing-secret-{number:03}", lasting=False)
    assert made.redact("lasting-secret") == MASK
    assert made.redact("passing-secret-099") == MASK
    assert made.redact("xx passing-secret-001 xx") == "xx passing-secret-001 xx"


def test_registries_do_not_share() -> None:
    registry("first-registry-secret")
    assert registry().redact("first-registry-secret") == "first-registry-secret"


def test_the_cost_does_not_grow_with_the_number_of_secrets() -> None:
    text = "an ordinary line of text of a server that says nothing secret at all\n" * 1_000

    def seconds(count: int) -> float:
        made = registry(*(f"{number:08}-secret" for number in range(count)))
        best = min(_timed(made, text) for _ in range(3))
        assert made.redact(text) == text
        return best

    assert seconds(20_000) < 10 * seconds(10) + 0.05


def _timed(made: SecretRegistry, text: str) -> float:
    begun = time.perf_counter()
    made.redact(text)
    return time.perf_counter() - begun


def test_threads_may_register_while_others_redact() -> None:
    made = SecretRegistry()
    failures: list[str] = []

    def works(thread: int) -> None:
        for number in range(300):
            secret = f"secret-{thread}-{number}-value"
            made.register(secret, lasting=number % 2 == 0)
            if secret in made.redact(f"x {secret} x"):
                failures.append(secret)

    threads = [threading.Thread(target=works, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
