"""The command line. Commands import what they need when they run, so that help is fast."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Entry point of ``a2a3sim``: 0 fine, 1 findings or wrong numerics, 2 usage."""
    import typer

    from a2a3sim.cli.app import app
    from a2a3sim.errors import A2A3Error, ConfigError, DeadlockError

    # Newer typers carry their own copy of click, so its base error is found through a subclass.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    command = typer.main.get_command(app)
    try:
        code = command.main(args=argv, prog_name="a2a3sim", standalone_mode=False)
        status = code if isinstance(code, int) else 0
    except typer.Exit as stop:
        status = stop.exit_code
    except typer.Abort:
        print("a2a3sim: interrupted", file=sys.stderr)
        status = 130
    except usage_error as error:
        context = getattr(error, "ctx", None)
        name = context.command_path if context is not None else "a2a3sim"
        message = error.format_message()
        # Called without arguments the message is the help itself.
        print(message if message.startswith("Usage:") else f"{name}: {message}", file=sys.stderr)
        status = 2
    except DeadlockError as error:
        print(error.report, file=sys.stderr)
        status = 1
    except ConfigError as error:
        print(f"a2a3sim: {error}", file=sys.stderr)
        status = 2
    except A2A3Error as error:
        print(f"a2a3sim: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        sys.stderr.close()
        status = 0
    if argv is None:
        sys.exit(status)
    return status
