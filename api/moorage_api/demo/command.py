"""``moorage demo``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from moorage_api.demo.processes import DemoFailed
from moorage_api.demo.story import Evidence, run_demo


def demo(
    folder: Annotated[
        str | None, typer.Option(help="The folder to hash; Python's standard library by default.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=4, max=40, help="How long the job takes at least.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the evidence as JSON.")] = False,
) -> None:
    """Show a long job outliving the gateway: submit, SIGKILL, start again, result delivered once.

    Works offline on a temporary home and cleans up after itself. Exit status 1 if a step fails.
    """
    console = Console(stderr=as_json, highlight=False)
    step = 0
    if folder is not None and not Path(folder).is_dir():
        console.print(f"The demo failed: there is no such folder: {folder}", markup=False)
        raise typer.Exit(1)

    def tell(text: str) -> None:
        nonlocal step
        step += 1
        console.print(f"[bold]{step}.[/bold] {text}")

    try:
        with console.status("") as status:

            def progress(task: dict[str, Any], gone: float) -> None:
                status.update(f"task {task['status']}, {gone:.0f} s, last polled {task['last_polled_at']}")

            evidence = run_demo(folder=folder, job_seconds=seconds, tell=tell, progress=progress)
    except DemoFailed as error:
        console.print(f"[red]The demo failed:[/red] {error}", markup=True)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(evidence.as_json(), indent=2))
    else:
        _conclude(console, evidence)


def _conclude(console: Console, evidence: Evidence) -> None:
    result = evidence.result
    console.print(f"\n[bold]Result[/bold] of {result['folder']}:")
    console.print(f"  {result['files']:,} files, {result['bytes']:,} bytes, sha256 {result['sha256']}")
    console.print("\n[bold]In the thread[/bold], exactly once:")
    console.print(f"  {evidence.notification_messages[0]}", markup=False)
    killed = evidence.gateways[0]["pid"]
    console.print(
        f"\nGateway {killed} was killed mid-job, {evidence.gateways[1]['pid']} finished its work; "
        f"{evidence.seconds} s in all. Next: uv run moorage serve"
    )
