"""`python train.py ...` is `game-rl train ...`, for those who look for a script."""

import sys

from game_rl.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
