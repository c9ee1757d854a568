"""Runs the command `game-rl` as `python -m game_rl`."""

import sys


def main() -> int:
    """Run `game_rl.cli.main`.

    The import is inside of the function because each worker process imports the script `game-rl`
    again, and with it this module; the command line would take 10 MB in each.
    """
    from game_rl.cli.main import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
