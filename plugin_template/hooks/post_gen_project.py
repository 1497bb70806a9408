"""Keeps the files of the chosen kind."""

import shutil
from pathlib import Path

chosen = Path("kinds") / "{{ cookiecutter.kind }}"
for file in sorted(path for path in chosen.rglob("*") if path.is_file()):
    target = Path(str(file.relative_to(chosen)).replace("PACKAGE", "{{ cookiecutter.package }}"))
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(file, target)
shutil.rmtree("kinds")
