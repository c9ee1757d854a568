"""The palette's promises, computed from the colours alone."""

import itertools
import re
from importlib import resources

import numpy as np
import pytest
from PIL import Image, ImageDraw

from game_rl.look import (
    AGENT,
    BASELINES,
    BEST,
    CELLS,
    DARK,
    EVALUATION,
    FLAG,
    LIGHT,
    MAPS,
    MEMBERS,
    PLACES,
    SHOWN_AGENT,
    STOCHASTIC_EVALUATION,
    TRAINING,
    VISITS,
    WORST,
    Look,
    rgb,
    stylesheet,
)
from game_rl.places.place_flags import PlaceFlag, draw_flags
from game_rl.places.place_layers import layers
from game_rl.places.places_picture import visit_colours
from tests.places.test_place_counts import counted

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (one, other))
    return high / low


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ rgb / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@LOOKS
def test_words_and_curves_are_legible_on_both_grounds(look: Look) -> None:
    for ground in (look.background, look.surface):
        for colour in (look.text, look.muted, look.accent, look.good, look.bad):
            assert contrast(colour, ground) >= 4.5, (colour, ground)
        for colour in look.series:
            assert contrast(colour, ground) >= 3, (colour, ground)


@LOOKS
@pytest.mark.parametrize("vision", VISIONS)
def test_series_differ_for_every_kind_of_colour_vision(look: Look, vision: str) -> None:
    seen = [lab(np.clip(np.array(VISIONS[vision]) @ linear(c), 0, 1)) for c in look.series]
    assert len(seen) == 8
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 11


@pytest.mark.parametrize("vision", VISIONS)
def test_agents_on_a_map_differ_from_each_visit_and_flag(vision: str) -> None:
    def seen(colour: str) -> np.ndarray:
        return lab(np.clip(np.array(VISIONS[vision]) @ linear(colour), 0, 1))

    for one, other in itertools.product((AGENT, SHOWN_AGENT), (FLAG, *VISITS)):
        assert np.linalg.norm(seen(one) - seen(other)) > 11, (one, other)


def page_file(name: str) -> str:
    return resources.files("game_rl.viewer").joinpath("page", name).read_text(encoding="utf-8")


def test_the_maps_of_the_page_have_the_colours_of_pictures_and_reports() -> None:
    text = page_file("places.js")
    css = stylesheet()
    colours = {"flag": FLAG, "agent": AGENT, "shown-agent": SHOWN_AGENT}
    for name, colour in colours.items():
        assert f'"{name}"' in text
        assert f"--{name}: {colour};" in css
    assert "[1, 2, 3, 4, 5, 6].map((number) => named(`visits-${number}`)" in text
    assert re.findall(r"--visits-\d: (#\w+);", css) == list(VISITS)
    assert not {FLAG, AGENT, SHOWN_AGENT, *VISITS}.intersection(re.findall(r"#[0-9a-f]{6}", text))
    picture = Image.new("RGB", (40, 40))
    flag = PlaceFlag(number=1, map_id=None, x=0, y=0, text="", timesteps=0)
    draw_flags(ImageDraw.Draw(picture), [(flag, (20, 20))])
    assert rgb(FLAG) in {colour for _, colour in picture.getcolors() or []}
    counts = counted([(0, 0, 0)] * 9 + [(0, 1, 0)], ("room", "x", "y"))
    (layer,) = layers(counts)
    shown = visit_colours(layer, most=9)[..., :3]
    assert {tuple(cell) for cell in shown[layer.counts > 0].tolist()} == {
        rgb(VISITS[0]),
        rgb(VISITS[-1]),
    }


def test_experiments_and_explorations_have_the_same_colours_on_the_page_and_in_reports() -> None:
    css = stylesheet()
    pages = {
        "overview_page.js": {"best": BEST, "mean": MEMBERS, "worst": WORST},
        "explore_page.js": {"cells": CELLS, "places": PLACES, "maps": MAPS, "best route": BEST},
    }
    of_a_run = {STOCHASTIC_EVALUATION, TRAINING, BASELINES}
    for name, colours in pages.items():
        shown = dict(re.findall(r'curve\("\w+", "([a-z ]+)", "([a-z-]+)"', page_file(name)))
        assert shown.keys() == colours.keys()
        assert len(set(colours.values())) == len(colours)
        assert not of_a_run.intersection(colours.values())
        for look in (LIGHT, DARK):
            for curve, meaning in shown.items():
                assert f"--{meaning}: {look.series[colours[curve]]};" in css


def test_the_page_and_the_plots_draw_a_kind_of_curve_in_one_colour() -> None:
    text = page_file("curves.js")
    shown = dict(re.findall(r'named\("\w+", "([a-z, ]+)", "([a-z-]+)"', text))
    plots = {
        "training": TRAINING,
        "evaluation": EVALUATION,
        "evaluation, stochastic": STOCHASTIC_EVALUATION,
        "final evaluation": EVALUATION,
    }
    assert shown.keys() == plots.keys()
    css = stylesheet()
    for look in (LIGHT, DARK):
        for name, colour in shown.items():
            assert f"--{colour}: {look.series[plots[name]]};" in css


def test_the_stylesheet_has_every_colour_of_both_themes() -> None:
    css = stylesheet()
    for look in (LIGHT, DARK):
        for name in ("background", "surface", "text", "muted", "grid", "accent", "good", "bad"):
            assert f"--{name}: {getattr(look, name)};" in css
        for number, colour in enumerate(look.series, start=1):
            assert f"--series-{number}: {colour};" in css
