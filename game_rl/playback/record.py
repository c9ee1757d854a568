"""Clips of real episodes, as GIF or MP4."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from stable_baselines3.common.policies import BasePolicy

from game_rl.checkpoints.random_numbers import drawing_from
from game_rl.emulator.emulator import FRAMES_PER_SECOND, SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.emulator.watched_emulator import WatchedEmulator, picture_frames
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_emulator, make_env, make_frame_format
from game_rl.errors import UsageError
from game_rl.playback.policy import TrainedRun
from game_rl.seeds import seed_for
from game_rl.vec_env.frame_stacks import FrameStacks, stacked_space

Picture = NDArray[np.uint8]  # [144, 160, 3] RGB

_SCALE = 2  # 320 x 288: the HUD is readable, and every pixel stays a square
_GIF_COLOURS = 256
_GIF_UNIT_S = 0.01  # a GIF counts time in hundredths of a second
_LAST_PICTURE_S = 1.0  # the end of an episode stands for a moment


def record_run(run: TrainedRun, *, episodes: int, output: Path) -> Path:
    """Write a clip of `episodes` episodes to `output`, whose suffix is .gif or .mp4."""
    write = {".gif": _write_gif, ".mp4": _write_mp4}.get(output.suffix.lower())
    if write is None:
        raise UsageError(f"{output} must end in .gif or .mp4")
    output.parent.mkdir(parents=True, exist_ok=True)
    frames = picture_frames(run.config.env.frame_skip)
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        watched = WatchedEmulator(make_emulator(run.game), picture_frames=frames)
        seed = seed_for(run.config.seed, "recording")
        with drawing_from(seed), closing(make_env(run.config.env, run.game, watched)) as env:
            write(_play(run, env, watched, episodes), frames / FRAMES_PER_SECOND, temporary)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return output


def _play(
    run: TrainedRun, env: GameBoyEnv, watched: WatchedEmulator, episodes: int
) -> Iterator[Picture]:
    """Every picture of the episodes; the last of each is repeated so that the eye catches it."""
    frame_format = make_frame_format(run.config.env.observation, run.game)
    size = run.config.env.frame_stack
    ring = np.zeros((size + 1, 1, *frame_format.shape), np.uint8)
    stacks = FrameStacks(ring)
    policy = run.policy(stacked_space(env.observation_space, size), env.action_space)
    hold = round(_LAST_PICTURE_S * FRAMES_PER_SECOND / picture_frames(run.config.env.frame_skip))
    seed: int | None = seed_for(run.config.seed, "recording")
    for _ in range(episodes):
        ring[stacks.newest, 0], _ = env.reset(seed=seed)
        stacks.begin_episode(0)
        watched.take_pictures()  # those of the idle frames
        over, seed = False, None
        while not over:
            action = _act(policy, stacks.all(), deterministic=run.deterministic)
            observation, _, terminated, truncated, _ = env.step(action)
            stacks.turn()
            ring[stacks.newest, 0] = observation
            over = terminated or truncated
            yield from watched.take_pictures()
        yield from [env.render()] * hold


def _act(policy: BasePolicy, stacks: NDArray[np.uint8], *, deterministic: bool) -> int:
    actions, _ = policy.predict(stacks, deterministic=deterministic)
    return int(actions[0])


def _write_gif(pictures: Iterator[Picture], seconds: float, path: Path) -> None:
    units = max(round(seconds / _GIF_UNIT_S), 2)  # browsers slow anything faster than 1/50 s down
    frames = _paletted(list(pictures))
    frames[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=units * 10,
        loop=0,
        optimize=False,
    )


def _paletted(pictures: list[Picture]) -> list[Image.Image]:
    """One palette for the whole clip: exact up to 256 colours (four shades stay exactly four)."""
    colours = np.unique(np.concatenate([np.unique(_codes(picture)) for picture in pictures]))
    if len(colours) > _GIF_COLOURS:
        palette = Image.fromarray(np.concatenate(pictures[:: len(pictures) // 8 + 1])).quantize()
        return [
            Image.fromarray(_enlarged(p)).quantize(palette=palette, dither=Image.Dither.NONE)
            for p in pictures
        ]
    rgb = [int(channel) for c in colours for channel in (c >> 16 & 255, c >> 8 & 255, c & 255)]
    frames = []
    for picture in pictures:
        indices = np.searchsorted(colours, _codes(picture)).astype(np.uint8)
        frame = Image.fromarray(_enlarged(indices))
        frame.putpalette(rgb)
        frames.append(frame)
    return frames


def _codes(picture: Picture) -> NDArray[np.uint32]:
    """One number a pixel, 0xRRGGBB."""
    wide = picture.astype(np.uint32)
    return (wide[:, :, 0] << 16 | wide[:, :, 1] << 8 | wide[:, :, 2]).astype(np.uint32)


def _enlarged(picture: Picture) -> Picture:
    return picture.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)


def _write_mp4(pictures: Iterator[Picture], seconds: float, path: Path) -> None:
    with av.open(str(path), "w", format="mp4") as container:
        rate = Fraction(1 / seconds).limit_denominator(1000)
        stream = container.add_stream("libx264", rate=rate, options={"crf": "18"})
        stream.pix_fmt = "yuv420p"
        stream.height, stream.width = SCREEN_HEIGHT * _SCALE, SCREEN_WIDTH * _SCALE
        for picture in map(_enlarged, pictures):
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
