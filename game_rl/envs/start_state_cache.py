"""A cache of start states, each made once per process."""

from collections.abc import Callable

from game_rl.emulator.emulator import Emulator
from game_rl.games.definition import Game
from game_rl.games.start_states import make_start_state

_Key = tuple[str, bool, str, str]
_made: dict[_Key, bytes] = {}


class StartStateCache:
    """The start states of a game, each made on first use.

    Playing a script from power-on takes 0.1 s or more. The resulting state is a pure function of
    the ROM, the hardware and the start state, so all envs of a process share it, and the state at
    power-on as well.
    """

    def __init__(self, emulator: Emulator, game: Game) -> None:
        """Make a cache for an emulator just switched on; scripts begin from its present state."""
        self._emulator = emulator
        self._game = game
        key = (game.rom.sha256, emulator.is_colour, "", "")
        self._power_on = _made_once(key, emulator.save_state)

    def state(self, name: str) -> bytes:
        """Return the state to load; the emulator may end up in any state."""
        spec = self._game.definition.start_states[name]
        place = str(self._game.folder.resolve()) if spec.file is not None else ""
        key = (self._game.rom.sha256, self._emulator.is_colour, spec.model_dump_json(), place)

        def make() -> bytes:
            return make_start_state(
                self._emulator, name, spec, power_on=self._power_on, folder=self._game.folder
            )

        return _made_once(key, make)


def _made_once(key: _Key, make: Callable[[], bytes]) -> bytes:
    if key not in _made:
        _made[key] = make()
    return _made[key]
