"""The map of visited places as JSON for the page."""

import base64
from typing import Any

import numpy as np

from game_rl.files.run_dir import RunDir
from game_rl.places.place_counts import parse_place_counts
from game_rl.places.place_layers import PlaceLayer, layers

_MOST_SIDE = 192
"""Cells on a side: large enough to be seen where places are single pixels of a screen."""


def places_json(run_dir: RunDir) -> dict[str, Any]:
    """Return the layers of the map; empty if the run has none, or it cannot be read now."""
    try:
        counts = parse_place_counts(run_dir.places.read_bytes())
    except (OSError, ValueError):
        return {}
    return {
        "names": list(counts.names),
        "offsets": {str(map_id): list(xy) for map_id, xy in counts.offsets.items()},
        "n_places": counts.n_places,
        "layers": [_layer(layer) for layer in layers(counts)],
    }


def _layer(layer: PlaceLayer) -> dict[str, Any]:
    factor = -(-max(layer.counts.shape) // _MOST_SIDE)
    shown = layer.coarser(factor) if factor > 1 else layer
    height, width = shown.counts.shape
    most = int(shown.counts.max())
    # on a logarithmic scale, on which a place that was visited once is visible
    levels = np.ceil(255 * np.log1p(shown.counts) / np.log1p(most)).astype(np.uint8)
    return {
        "name": shown.name,
        "map_id": None if shown.map_id is None else list(shown.map_id),
        "x0": shown.x0,
        "y0": shown.y0,
        "width": width,
        "height": height,
        "cell_side": shown.cell_side,
        "most": most,
        "levels": base64.b64encode(levels.tobytes()).decode(),
    }
