"""Plugin distributions as an installer leaves them: a module and a dist-info folder."""

from pathlib import Path

HOOK = "from moorage.contract import hookimpl\n"


def install(folder: Path, name: str, source: str | None, *, distribution: str | None = None) -> None:
    """A distribution with one plugin. ``source`` None leaves the module out, as a stale install does."""
    distribution = distribution or f"dist_{name}"
    module = f"plugin_{name}_{distribution}"
    folder.mkdir(parents=True, exist_ok=True)
    if source is not None:
        (folder / f"{module}.py").write_text(source)
    info = folder / f"{distribution}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[moorage.plugins]\n{name} = {module}\n")


def hook(name: str, body: str = "return ()", parameters: str = "", before: str = "") -> str:
    """Source of a plugin with one hook implementation."""
    return f"{HOOK}{before}\n@hookimpl\ndef {name}({parameters}):\n    {body}\n"


SECTION = (
    "from moorage.contract import ConfigSection\n\n"
    "@hookimpl\ndef moorage_config_sections():\n"
    "    return [ConfigSection('{name}', lambda: dict)]\n"
)

BAD_PLUGINS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    # name → (source, what its report must say)
    "gone": (None, ("ModuleNotFoundError",)),
    "raises": ("raise ImportError('no such engine')", ("no such engine",)),
    "exits": ("import sys; sys.exit(3)", ("SystemExit",)),
    "interrupts": ("raise KeyboardInterrupt", ("KeyboardInterrupt",)),
    "base": ("raise BaseException('odd')", ("BaseException", "odd")),
    "broken_syntax": ("def (:", ("SyntaxError",)),
    "unknown_hook": (hook("moorage_tasks_drivers"), ("moorage_tasks_drivers",)),
    "parameter": (hook("moorage_stores", parameters="extra"), ("moorage_stores", "extra")),
    "default": (hook("moorage_stores", parameters="extra=1"), ("moorage_stores", "extra")),
    "varargs": (hook("moorage_stores", parameters="*extra"), ("moorage_stores",)),
    "keyword_only": (hook("moorage_stores", parameters="*, extra"), ("moorage_stores",)),
    "coroutine": (
        f"{HOOK}\n@hookimpl\nasync def moorage_stores():\n    return ()\n",
        ("moorage_stores",),
    ),
    "generator": (hook("moorage_stores", "yield"), ("moorage_stores",)),
    "wrapper": (
        f"{HOOK}\n@hookimpl(wrapper=True)\ndef moorage_stores():\n    return (yield)\n",
        ("moorage_stores",),
    ),
    "hook_raises": (hook("moorage_stores", "1 / 0"), ("ZeroDivisionError",)),
    "hook_exits": (hook("moorage_stores", "raise SystemExit(1)"), ("SystemExit",)),
    "rubbish": (hook("moorage_stores", "return 42"), ("moorage_stores",)),
    "wrong_kind": (hook("moorage_stores", "return ['text']"), ("moorage_stores", "str")),
    "half": (
        HOOK + SECTION.format(name="half_section") + "\n@hookimpl\ndef moorage_stores():\n    1 / 0\n",
        ("ZeroDivisionError",),
    ),
    "too_new": ("MOORAGE_API = '>=7'\n" + hook("moorage_stores"), (">=7", "0.1")),
    "odd_range": ("MOORAGE_API = 'yes please'\n" + hook("moorage_stores"), ("yes please",)),
    "section_a": (HOOK + SECTION.format(name="shared"), ("shared", "section_b", "dist_section_b")),
    "section_b": (HOOK + SECTION.format(name="shared"), ("shared", "section_a", "dist_section_a")),
}


def install_bad_plugins(folder: Path) -> None:
    """All of `BAD_PLUGINS`, two distributions with plugins named ``twin``, and a good plugin."""
    for name, (source, _) in BAD_PLUGINS.items():
        install(folder, name, source)
    install(folder, "twin", hook("moorage_stores"), distribution="first")
    install(folder, "twin", hook("moorage_stores"), distribution="second")
    install(folder, "good", HOOK + SECTION.format(name="good_section"))
