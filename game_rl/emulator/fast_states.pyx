# cython: language_level=3, boundscheck=False, wraparound=False
"""PyBoy's raw states in less than a millisecond, instead of through Python calls for each byte.

The module is compiled against PyBoy's own declarations (its .pxd files), so that PyBoy writes and
reads the bytes by C calls. Their layout is that of one version: with another one, the module refuses
to be imported. The bytes are those of `PyBoy.save_state` and `load_state`, and so are the errors.
"""

from array import array
from importlib.metadata import version

from pyboy.utils import PyBoyAssertException

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from pyboy.pyboy cimport PyBoy
from pyboy.utils cimport IntIOInterface

cdef extern from *:
    """
    /* game_rl/emulator/state_speed.py looks for this text in the compiled file */
    static const char compiled_for[] = "compiled for PyBoy " GAME_RL_PYBOY_VERSION;
    """
    const char *compiled_for

COMPILED_FOR = (<bytes> compiled_for).decode().rpartition(" ")[2]
"""Version of PyBoy."""

if version("pyboy") != COMPILED_FOR:
    raise ImportError(f"compiled for PyBoy {COMPILED_FOR}, but {version('pyboy')} is installed")

cdef enum:
    _FIRST_ROOM = 512 * 1024  # more than any state takes
    _FORMAT_WITH_BORDER = 23  # and every later one


@cython.final
cdef class _Writer(IntIOInterface):
    """A file that grows in memory."""

    cdef uint8_t *data
    cdef int64_t size
    cdef int64_t room

    def __init__(self):  # PyBoy's wants an argument
        pass

    def __dealloc__(self):
        free(self.data)

    cdef int write_all(self, const uint8_t[::1] values) except -1:
        while self.size + values.shape[0] > self.room:
            self._make_room()
        memcpy(self.data + self.size, &values[0], values.shape[0])
        self.size += values.shape[0]
        return 0

    cdef int _make_room(self) except -1:
        cdef int64_t room = 2 * self.room if self.room else _FIRST_ROOM
        cdef uint8_t *data = <uint8_t *> realloc(self.data, room)
        if data == NULL:
            raise MemoryError
        self.data = data
        self.room = room
        return 0

    cpdef int64_t write(self, uint8_t value) except -1:
        if self.size == self.room:
            self._make_room()
        self.data[self.size] = value
        self.size += 1
        return 1

    cpdef int64_t write_16bit(self, uint16_t value) except -1:
        self.write(value & 0xFF)
        return self.write(value >> 8)

    cpdef int64_t write_32bit(self, uint32_t value) except -1:
        if self.size + 4 > self.room:
            self._make_room()
        cdef uint8_t *place = self.data + self.size
        place[0] = value & 0xFF
        place[1] = value >> 8 & 0xFF
        place[2] = value >> 16 & 0xFF
        place[3] = value >> 24
        self.size += 4
        return 4

    cpdef int64_t write_64bit(self, uint64_t value) except -1:
        self.write_32bit(value & 0xFFFFFFFF)
        return self.write_32bit(value >> 32)

    cpdef int flush(self) except -1:
        return 0


@cython.final
cdef class _Reader(IntIOInterface):
    """A file that reads bytes which its maker keeps alive."""

    cdef const uint8_t *data
    cdef int64_t size
    cdef int64_t place

    def __init__(self):  # PyBoy's wants an argument
        pass

    cdef int _check(self, int64_t n_bytes) except -1:
        if self.place + n_bytes > self.size:
            raise PyBoyAssertException("No data")
        return 0

    cdef int read_all(self, uint8_t[::1] values) except -1:
        self._check(values.shape[0])
        memcpy(&values[0], self.data + self.place, values.shape[0])
        self.place += values.shape[0]
        return 0

    cpdef uint8_t read(self) except? -1:
        self._check(1)
        self.place += 1
        return self.data[self.place - 1]

    cpdef uint16_t read_16bit(self) except? -1:
        self._check(2)
        cdef const uint8_t *place = self.data + self.place
        self.place += 2
        return place[0] | <uint16_t> place[1] << 8

    cpdef uint32_t read_32bit(self) except? -1:
        self._check(4)
        cdef const uint8_t *place = self.data + self.place
        self.place += 4
        return place[0] | place[1] << 8 | place[2] << 16 | <uint32_t> place[3] << 24

    cpdef uint64_t read_64bit(self) except? -1:
        cdef uint64_t low = self.read_32bit()
        return low | <uint64_t> self.read_32bit() << 32

    cpdef int flush(self) except -1:
        return 0


def save(PyBoy pyboy not None):
    """Return PyBoy's state."""
    cdef _Writer file = _Writer()
    cdef _Border border = _Border(pyboy)
    border.hide()
    try:
        pyboy.mb.save_state(file)
    finally:
        border.show()
    for part in border.parts:
        file.write_all(part)
    return PyBytes_FromStringAndSize(<const char *> file.data, file.size)


def load(PyBoy pyboy not None, const uint8_t[::1] state not None):
    """Let PyBoy continue from a state; return how many of its bytes it has read."""
    cdef _Reader file = _Reader()
    file.size = state.shape[0]
    if file.size:
        file.data = &state[0]
    if file.size == 0 or state[0] < _FORMAT_WITH_BORDER:
        pyboy.mb.load_state(file)
        return file.place
    cdef _Border border = _Border(pyboy)
    border.hide()
    try:
        pyboy.mb.load_state(file)
    finally:
        border.show()
    for part in border.parts:
        file.read_all(part)
    return file.place


@cython.final
cdef class _Border:
    """The border of a Super Game Boy, which ends each state.

    PyBoy keeps it in arrays of a Python object and makes an object of each of its 10,368 bytes, which
    takes two thirds of a load. While the arrays are hidden, PyBoy finds empty ones.
    """

    cdef object owner
    cdef tuple parts

    def __init__(self, PyBoy pyboy):
        self.owner = pyboy.mb.sgb.state
        self.parts = (
            self.owner.border_tiles, self.owner.border_map, self.owner.border_palettes
        )

    cdef int hide(self) except -1:
        nothing = array("B")
        self._put(nothing, nothing, nothing)
        return 0

    cdef int show(self) except -1:
        self._put(*self.parts)
        return 0

    def _put(self, tiles, places, palettes):
        self.owner.border_tiles = tiles
        self.owner.border_map = places
        self.owner.border_palettes = palettes
