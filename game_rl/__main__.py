"""`python -m game_rl` is `game-rl`."""

import sys

from game_rl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
