"""Writing pictures of a screen as an MP4; only this module imports av, of the extra `video`."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av

from game_rl.playback.clip import Picture, enlarged


def write_mp4(pictures: Iterable[Picture], seconds: float, path: Path) -> None:
    """Write an MP4 that shows each picture for `seconds`."""
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
