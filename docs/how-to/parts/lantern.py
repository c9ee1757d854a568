"""A reward class that makes a part of the observation: the 24 rooms, as the keeper knows them."""

import numpy as np


class Lantern:
    """Knows for each room whether it was seen (1), a key was found there (2), or it is here (3)."""

    def reset(self, variables):
        self.keys = variables["keys"]
        self.rooms = {variables["room"]: 1}

    def step(self, variables):
        found = variables["keys"] > self.keys
        self.keys = variables["keys"]
        room = variables["room"]
        self.rooms[room] = 2 if found else self.rooms.get(room, 1)
        return 0.0

    def parts(self, variables):
        ways = np.zeros(24, np.uint8)
        for room, known in self.rooms.items():
            ways[room] = known
        ways[variables["room"]] = 3
        return {"ways": ways.reshape(6, 4)}
