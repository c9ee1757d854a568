"""Train agents on Game Boy games; importing it makes the bundled games known to Gymnasium."""

from game_rl.envs.registration import register_bundled_games

register_bundled_games()
