"""`python -m game_rl` is `game-rl`."""

import sys


def main() -> int:
    """See `game_rl.cli.main`.

    That is imported here, and not above: each worker process imports the script `game-rl` again,
    and with it this module; the command line would take 10 MB in each.
    """
    from game_rl.cli.main import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
