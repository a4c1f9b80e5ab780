"""The command line: one file a command, imported when it is asked for.

``main`` turns what a command returns or raises into an exit code: 0 nothing wrong, 1 something is firing
or found, 2 asked wrongly or unreadable, 69 could not observe, 78 settings, 70 a mistake of this program.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from wtwin_watch.errors import SettingsError, WtwinWatchError

COMMANDS = {
    "run": "Watch runs and tell people when one degrades. Needs no name: it is the default.",
    "monitor": "Judge a finished log by the W-Twin method, point by point.",
    "suggest": "Say what kind of failure a finished log shows, and what to do about it.",
    "demo": "Train a small model that fails on purpose, and watch it fail.",
    "inspect": "Say what a log file or folder is, and what would be read from it.",
    "check": "Check the settings, and whether every source can be read.",
    "status": "Show what a running daemon sees: runs, alerts, what isn't delivered yet.",
    "alerts": "List the latest alerts, or show why one fired and who was told.",
    "ack": "Say that you have seen an alert, which stops its repeats.",
    "accept": "Take the present level of a run as the new normal.",
    "silence": "Tell nobody about some alerts for a time.",
    "digest": "Say what fired and what didn't in the last day or week.",
    "outbox": "List what isn't delivered yet; try it again, or drop it.",
    "test-notify": "Send a test notification to every receiver.",
}
EXAMPLES = """\
wtwin-watch --csv 'runs/*.csv'        watch logs as they grow, alert in this terminal
wtwin-watch inspect runs/             what is in a folder of logs
wtwin-watch demo                      see it catch a failing training, in a minute
"""
ASKED_WRONGLY, OWN_MISTAKE, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141


class LazyGroup(click.Group):
    """Knows its commands by name, imports one when it is called, and runs ``run`` if none is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"wtwin_watch.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front of options that belong to it."""
        own = {name for option in self.get_params(ctx) for name in option.opts}
        first = next((i for i, arg in enumerate(args) if arg not in own), len(args))
        named = first < len(args) and not args[first].startswith("-")
        if not named and not {"-h", "--help", "--version"} & set(args[:first]):
            args = [*args[:first], "run", *args[first:]]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        if args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there is: {', '.join(COMMANDS)}"
            ctx.fail(f"no such command: {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands, an example, and the options of ``run``."""
        formatter.write_usage(ctx.command_path, "[COMMAND] [OPTIONS]")
        self.format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        self.format_own_options(ctx, formatter)
        run = self.get_command(ctx, "run")
        if run is not None:
            records = [option.get_help_record(ctx) for option in run.get_params(ctx)]
            with formatter.section("Options of run"):
                formatter.write_dl([r for r in records if r and "--help" not in r[0]])
        formatter.write_paragraph()
        formatter.write_text("wtwin-watch COMMAND --help says more about a command.")

    def format_own_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options that stand before a command."""
        records = [option.get_help_record(ctx) for option in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record])


@click.group(
    cls=LazyGroup,
    name="wtwin-watch",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--debug", is_flag=True, help="Show a traceback with errors (WTWIN_WATCH_DEBUG=1).")
@click.version_option(package_name="wtwin-watch", message="wtwin-watch %(version)s")
def group(debug: bool) -> None:
    """Watch training runs from outside the job, and tell people when one degrades."""
    if debug:
        os.environ["WTWIN_WATCH_DEBUG"] = "1"


def main(args: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        code = _run(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Nobody reads on. Python's own flush at the end must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(args: list[str]) -> int:
    try:
        code: Any = group.main(args=args, prog_name="wtwin-watch", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "wtwin-watch"
        _say(f"{_as_ours(error.format_message())}\nTry '{path} --help'.")
        return ASKED_WRONGLY
    except click.ClickException as error:
        _say(_as_ours(error.format_message()))
        return ASKED_WRONGLY
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except WtwinWatchError as error:
        _say(_told(error))
        return error.exit_code
    except Exception as error:
        _say(
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a mistake in wtwin-watch; --debug before the command shows where."
        )
        return OWN_MISTAKE


def _as_ours(text: str) -> str:
    """Begin one of click's sentences as ours begin, which stand behind a colon."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _told(error: WtwinWatchError) -> str:
    if isinstance(error, SettingsError) and len(error.mistakes) > 1:
        return f"{len(error.mistakes)} mistakes in the settings:\n" + "\n".join(error.mistakes)
    return str(error)


def _say(text: str) -> None:
    """Tell an error on stderr, with secrets masked; inside an ``except``, with a traceback if asked for."""
    from wtwin_watch.cli.output import one_line
    from wtwin_watch.logs import masked

    if os.environ.get("WTWIN_WATCH_DEBUG", "") not in {"", "0"}:
        import traceback

        sys.stderr.write(masked(traceback.format_exc()))
    first, *rest = map(one_line, masked(text).split("\n"))
    lines = [f"wtwin-watch: error: {first}", *(f"  {line}" if line else "" for line in rest)]
    sys.stderr.write("\n".join(lines) + "\n")
