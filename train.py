"""`python train.py --config configs/duel_ppo.yaml` is `game-rl train --config configs/duel_ppo.yaml`."""

import sys

from game_rl.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
