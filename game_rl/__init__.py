"""Train agents on Game Boy games; importing this package registers the games with Gymnasium."""

from game_rl.envs.registration import register_bundled_games

register_bundled_games()
