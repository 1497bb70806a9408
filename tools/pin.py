"""Write the versions of this environment into ``constraint-dependencies`` of ``pyproject.toml``.

``uv run --no-sync python tools/pin.py`` after ``uv sync --all-packages --upgrade``: the pins stand in for a
lock file, which would record registry hosts.
"""

import re
from importlib.metadata import distributions
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def pins() -> list[str]:
    """``name==version`` of every installed distribution that is not ours, sorted."""
    found = {
        re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower(): one.version
        for one in distributions()
        if not one.metadata["Name"].startswith("moorage")
    }
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def main() -> None:
    """Rewrite the block in place."""
    block = "constraint-dependencies = [\n" + "".join(f'    "{pin}",\n' for pin in pins()) + "]"
    text, count = re.subn(
        r"constraint-dependencies = \[\n.*?^\]", block, PYPROJECT.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    if count != 1:
        raise SystemExit("pyproject.toml has no constraint-dependencies block")
    PYPROJECT.write_text(text)


if __name__ == "__main__":
    main()
