"""What only one plugin may claim (PLUG-3): whoever claims it twice is refused, whichever came first."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from moorage.host.discovery import Candidate
from moorage.host.loading import Loaded
from moorage.host.reports import LoadReport

MAX_NAMED = 5


def name_conflicts(candidates: Iterable[Candidate], blocked: Collection[str]) -> Mapping[str, str]:
    """Plugin names that several candidates bear, each with the reason to refuse all of them."""
    by_name: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.name not in blocked:
            by_name[candidate.name].append(candidate)
    return {
        name: f"several plugins are named {name!r}: {_listed(_where(c) for c in same)}; "
        f"uninstall all but one, or block the name"
        for name, same in by_name.items()
        if len(same) > 1
    }


def claim_conflicts(loaded: Sequence[Loaded], reserved_commands: Collection[str]) -> Mapping[str, str]:
    """Names of plugins whose contributions collide, each with the reason to refuse it.

    All are judged at once, so that the answer does not depend on any order.
    """
    claims: dict[tuple[str, str], list[str]] = defaultdict(list)
    reports = {item.report.name: item.report for item in loaded}
    for item in loaded:
        for hook, spec in item.specs:
            for claim in hook.unique(spec):
                claims[claim].append(item.report.name)
    reasons: dict[str, list[str]] = defaultdict(list)
    for (kind, name), owners in sorted(claims.items()):
        if kind == "command" and name in reserved_commands:
            for owner in set(owners):
                reasons[owner].append(f"command {name!r} is one of the core's own")
        elif len(owners) > 1:
            distinct = sorted(set(owners))
            for owner in distinct:
                others = [reports[other] for other in distinct if other != owner]
                reasons[owner].append(_claimed_twice(kind, name, others))
    return {owner: "; ".join(texts) for owner, texts in reasons.items()}


def _claimed_twice(kind: str, name: str, others: Sequence[LoadReport]) -> str:
    if not others:
        return f"{kind} {name!r} is contributed twice by this plugin"
    listed = _listed(f"plugin {other.name!r} of {other.source}" for other in others)
    return f"{kind} {name!r} is also contributed by {listed}: block or uninstall one of them"


def _where(candidate: Candidate) -> str:
    return f"{candidate.distribution} {candidate.version}".strip() + f" ({candidate.entry_point})"


def _listed(items: Iterable[str]) -> str:
    texts = list(items)
    more = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return ", ".join(texts[:MAX_NAMED]) + more
