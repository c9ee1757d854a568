"""Pictures of a screen as a GIF, written with little memory per picture, or as an MP4."""

import importlib
import io
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from game_rl.errors import UsageError
from game_rl.system.packages import check_extra

Picture = NDArray[np.uint8]  # [height, width, 3] RGB
Indices = NDArray[np.uint8]  # [height, width], indices into a palette

_LARGE = 400  # wider pictures, such as maps, are not enlarged
_SCALE = 2  # 320 x 288: the HUD is readable, and every pixel stays a square
_GIF_COLOURS = 256
_GIF_UNIT_S = 0.01  # a GIF counts time in hundredths of a second
_SHORTEST_UNITS = 2  # browsers slow anything faster than 1/50 s down
_LONGEST_UNITS = 65_535
_KEPT = 1  # what is shown stays below the next part
_FOREVER = b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_SAMPLES = 8  # pictures from which an inexact palette is made


ClipWriter = Callable[[Iterable[Picture], float, Path], None]


def clip_writer(path: Path) -> ClipWriter:
    """Return the function that writes the format of this suffix.

    Raises:
        UsageError: there is no such format, or the package is missing that MP4 needs.
    """
    suffix = path.suffix.lower()
    if suffix == ".gif":
        return write_gif
    if suffix != ".mp4":
        raise UsageError(f"{path} must end in .gif or .mp4")
    check_extra("av", str(path), way_out="write a .gif")
    return write_mp4


def write_gif(pictures: Iterable[Picture], seconds: float, path: Path) -> None:
    """Write a looping GIF that shows each picture for `seconds`.

    All colours must be known before the first picture is written, so the pictures are kept
    compressed until then. A picture that equals the previous one is not written again. Of the
    others only the changed part is written, and what has not changed in it may be transparent.
    """
    waiting = KeptPictures()
    for picture in pictures:
        waiting.add(picture)
    palette, index = _palette(waiting)
    units = max(round(seconds / _GIF_UNIT_S), _SHORTEST_UNITS)
    with path.open("wb") as file:
        _write_frames(file, map(index, waiting), palette, units)


def write_mp4(pictures: Iterable[Picture], seconds: float, path: Path) -> None:
    """Write an MP4 that shows each picture for `seconds`."""
    av = importlib.import_module("av")  # of the extra `video`, which GIFs do without
    with av.open(str(path), "w", format="mp4") as container:
        rate = Fraction(1 / seconds).limit_denominator(1000)
        stream = container.add_stream("libx264", rate=rate, options={"crf": "18"})
        stream.pix_fmt = "yuv420p"
        for number, picture in enumerate(map(enlarged, pictures)):
            if number == 0:
                stream.height, stream.width = picture.shape[:2]
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def last_of_mp4(content: bytes) -> Image.Image:
    """Return the last picture of an MP4.

    Raises:
        OSError: it is none, or is damaged.
        UsageError: the package is missing that reads it.
    """
    check_extra("av", "a picture of an MP4")
    av = importlib.import_module("av")
    try:
        with av.open(io.BytesIO(content)) as container:
            container.seek(container.duration or 0)  # the key frame before the end
            (last,) = deque(container.decode(video=0), maxlen=1)
            picture: Image.Image = last.to_image()
    except (av.FFmpegError, IndexError, ValueError) as error:  # the last two: it has no picture
        raise OSError(f"it is no MP4, or is damaged ({error})") from None
    return picture


def save_clip(pictures: Iterable[Picture], seconds: float, output: Path) -> Path:
    """Write a clip, in the format of its suffix, and return its path; it appears in one rename.

    Raises:
        UsageError: the suffix is neither .gif nor .mp4.
    """
    write = clip_writer(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        write(pictures, seconds, temporary)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return output


class KeptPictures:
    """Pictures of one size, kept compressed; a screen compresses to a thirtieth or less."""

    def __init__(self) -> None:
        self._compressed: list[bytes] = []
        self._last: Picture | None = None
        self.colours = np.empty(0, np.uint32)  # of all pictures, as 0xRRGGBB, ascending

    def add(self, picture: Picture) -> None:
        if self._last is not None and np.array_equal(picture, self._last):
            self._compressed.append(self._compressed[-1])
            return
        self._last = picture.copy()
        self._compressed.append(zlib.compress(self._last.tobytes(), 1))
        self.colours = np.union1d(self.colours, _codes(picture))

    def __len__(self) -> int:
        return len(self._compressed)

    def __iter__(self) -> Iterator[Picture]:
        return map(self._picture, self._compressed)

    def samples(self) -> list[Picture]:
        return [self._picture(data) for data in self._compressed[:: len(self) // _SAMPLES + 1]]

    def _picture(self, compressed: bytes) -> Picture:
        assert self._last is not None
        return np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(self._last.shape)


def _palette(waiting: KeptPictures) -> tuple[bytes, Callable[[Picture], Indices]]:
    """Return an RGB palette of up to 256 colours, and a function from a picture to its indices.

    They are exact if the pictures have no more colours than that.
    """
    colours = waiting.colours
    if len(colours) <= _GIF_COLOURS:
        channels = np.stack([colours >> shift & 255 for shift in (16, 8, 0)], axis=1)
        return channels.astype(np.uint8).tobytes(), lambda picture: np.searchsorted(
            colours, _codes(picture)
        ).astype(np.uint8)
    opaque = _GIF_COLOURS - 1  # one more is transparent
    few = Image.fromarray(np.concatenate(waiting.samples())).quantize(opaque)
    rgb = bytes(few.getpalette() or ())
    return rgb, lambda picture: np.asarray(
        Image.fromarray(picture).quantize(palette=few, dither=Image.Dither.NONE)
    )


def _codes(picture: Picture) -> NDArray[np.uint32]:
    """Return one number for each pixel, 0xRRGGBB."""
    wide = picture.astype(np.uint32)
    return (wide[:, :, 0] << 16 | wide[:, :, 1] << 8 | wide[:, :, 2]).astype(np.uint32)


def _write_frames(file: BinaryIO, frames: Iterator[Indices], palette: bytes, units: int) -> None:
    n_colours = len(palette) // 3
    transparent = n_colours if n_colours < _GIF_COLOURS else None
    before: Indices | None = None
    frame = next(frames)
    file.write(_gif_header(frame, palette))
    box = (0, 0, frame.shape[1], frame.shape[0])
    shown = units
    for following in frames:
        changed = _changed(frame, following)
        if changed is None and shown + units <= _LONGEST_UNITS:
            shown += units
            continue
        file.write(_part(before, frame, box, shown, transparent))
        before = frame
        frame = following
        box = changed or (0, 0, 1, 1)
        shown = units
    file.write(_part(before, frame, box, shown, transparent))
    file.write(b";")


def _gif_header(frame: Indices, palette: bytes) -> bytes:
    """Return the header of a GIF with one palette, padded to a power of two.

    There is room for a transparent colour, unless all 256 are used.
    """
    bits = min(8, (len(palette) // 3).bit_length())
    height, width = frame.shape
    scale = _scale_of(frame)
    screen = struct.pack("<HHBBB", width * scale, height * scale, 0x80 | bits - 1, 0, 0)
    return b"GIF89a" + screen + palette.ljust(3 << bits, b"\0") + _FOREVER


def _changed(before: Indices, after: Indices) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom of the changed part, or None if nothing changed."""
    rows, columns = np.nonzero(before != after)
    if not len(rows):
        return None
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def _part(
    before: Indices | None,
    frame: Indices,
    box: tuple[int, int, int, int],
    units: int,
    transparent: int | None,
) -> bytes:
    """Return a part of a frame as it is, or with what has not changed transparent: the shorter."""
    left, top, right, bottom = box
    scale = _scale_of(frame)
    own = frame[top:bottom, left:right]
    place = (left * scale, top * scale)
    about = {"duration": 10 * units, "disposal": _KEPT}
    part = Image.fromarray(_repeated(own, scale))
    written = b"".join(GifImagePlugin.getdata(part, place, **about))
    if before is None or transparent is None:
        return written
    is_new = own != before[top:bottom, left:right]
    changes = np.where(is_new, own, np.uint8(transparent))
    part = Image.fromarray(_repeated(changes, scale))
    data = GifImagePlugin.getdata(part, place, transparency=transparent, **about)
    return min(written, b"".join(data), key=len)


def enlarged(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture of twice the width and height, with each pixel four times; a large one as it
    is.
    """
    return _repeated(picture, _scale_of(picture))


def _scale_of(picture: NDArray[np.uint8]) -> int:
    return 1 if picture.shape[1] > _LARGE else _SCALE


def _repeated(picture: NDArray[np.uint8], times: int) -> NDArray[np.uint8]:
    return picture.repeat(times, axis=0).repeat(times, axis=1)
