"""A script that does the same as `game-rl train`: `python train.py ...`."""

import sys

if __name__ == "__main__":
    # imported here, because each worker imports this file and would take 10 MB more
    from game_rl.cli.main import main

    sys.exit(main(["train", *sys.argv[1:]]))
