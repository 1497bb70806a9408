"""Whether a plugin supports this version of the plugin API (PLUG-6)."""

from moorage.contract.version import API_VERSION


class InvalidRange(ValueError):
    """What a plugin declares is no version range."""


def incompatibility(declared: object, api_version: str = API_VERSION) -> str | None:
    """Why a plugin with this ``MOORAGE_API`` cannot be used here; None where it can.

    Raises `InvalidRange` for what is no PEP 440 specifier.
    """
    if not isinstance(declared, str) or not declared.strip():
        raise InvalidRange(f'MOORAGE_API must be a version range such as ">={API_VERSION}"')
    if declared.strip() == f">={api_version}":
        return None  # spares the built-in plugins an import that costs more than all of them (PLUG-8)
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    try:
        ranges = SpecifierSet(declared)
    except InvalidSpecifier:
        raise InvalidRange(f"MOORAGE_API {declared[:100]!r} is no version range (PEP 440)") from None
    here = Version(api_version)
    needs = f"it needs plugin API {declared.strip()}, and this is {api_version}"
    if not ranges.contains(here, prereleases=True):
        return needs
    if any(part.operator in ("<", "<=", "==", "~=", "===") for part in ranges):
        return None
    lows = [Version(part.version) for part in ranges if part.operator in (">=", ">")]
    if not lows:
        return None
    low = max(lows)
    if low.major != here.major or (here.major == 0 and low.minor != here.minor):
        series = f"{low.major}.{low.minor}" if low.major == 0 else f"{low.major}"
        return f"{needs} (without an upper bound the range means {series}.x only)"
    return None
