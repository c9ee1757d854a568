"""`python train.py ...` is `game-rl train ...`, for those who look for a script."""

import sys

if __name__ == "__main__":
    from game_rl.cli.main import main  # here: each worker imports this file, and would take 10 MB

    sys.exit(main(["train", *sys.argv[1:]]))
