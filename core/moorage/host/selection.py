"""Picks what settings name out of what is contributed, or says what to install (PLUG-1, PLUG-4)."""

from moorage.contract import StoreSpec, StoreUnavailable
from moorage.host.known import Kind, missing_distribution
from moorage.host.registry import Contribution, PluginHost


def store_for(host: PluginHost, database_url: str) -> Contribution[StoreSpec]:
    """The store for a database URL; raises `StoreUnavailable` that names what to install or to mend."""
    scheme = database_url.partition(":")[0].partition("+")[0].lower()
    for contribution in host.stores():
        if scheme in contribution.spec.schemes:
            return contribution
    known = sorted({s for contribution in host.stores() for s in contribution.spec.schemes})
    reason = why_missing(host, scheme, "stores")
    if reason is None:
        reason = f"the loaded stores take {', '.join(known)}" if known else "no store plugin is loaded"
    raise StoreUnavailable(f"no loaded plugin has a store for {scheme}: databases: {reason}")


def why_missing(host: PluginHost, name: str, kind: Kind) -> str | None:
    """What keeps a known name from being there: its distribution is not installed, or its plugin is not
    loaded. None for a name that the core has never heard of."""
    distribution = missing_distribution(name, kind)
    if distribution is None:
        return None
    amiss = [r for r in host.reports if r.distribution == distribution and not r.loaded]
    if amiss:
        reasons = "; ".join(f"plugin {r.name!r} is {r.state}: {r.error}" for r in amiss)
        return f"it comes with {amiss[0].source}, whose {reasons}"
    if any(r.distribution == distribution for r in host.reports):
        return f"the installed {distribution} does not bring it: upgrade {distribution}"
    return f"install {distribution}"
