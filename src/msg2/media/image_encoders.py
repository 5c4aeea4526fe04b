"""Encoders of images, by name: images -> vectors; the cosine of two vectors is their similarity.

`image_encoder` knows classical descriptors and CLIP models, where an image is near the words that describe it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.text_encoders import CLIP, Encoder, Image, find_checkpoint, l2_normalize, load_clip

ImageEncoder: TypeAlias = Encoder[Image]


def image_encoder(name: str = "descriptors") -> ImageEncoder:
    """Return the encoder of that name: "descriptors", the folder of a CLIP model, or its name on the hub.

    >>> image_encoder("descriptors").width
    512
    """
    return ImageDescriptors() if name == "descriptors" else load_clip(find_checkpoint(name, CLIP))[0]


_SIDE = 64  # rows and columns to which an image is averaged first, so that its size and shape have no part in the rest
_CELLS = 4
_ANGLES = 8
_HUES, _CHROMAS, _VALUES = 16, 6, 3


@dataclass(slots=True)
class ImageDescriptors:
    """Colours and edges, cell by cell, and the colours of the whole; needs no model and knows no objects.

    The image, averaged to 64 x 64, gives three blocks of numbers that are never negative:

    - colour, 4 x 4 cells x 6: mean and standard deviation of red, green and blue in each cell;
    - edges, 4 x 4 cells x 8: the gradients of grey in each cell, by angle (mod 180 degrees, each shared between the two
      nearest of 8), summed by magnitude;
    - histogram, 16 x 6 x 3: the share of pixels by hue, root of chroma (max - min of red, green and blue) and value
      (max). What has next to no chroma has no hue, and counts under the first.

    With blocks b, the vector is the concatenation of sqrt(b / sum b), scaled to length 1: cosines are mean overlaps
    (Bhattacharyya coefficients) of the blocks. A block without edges is 0; the histogram never is.

    >>> black, red, rose = (np.full((90, 160, 3), colour, np.uint8) for colour in ((0,) * 3, (200, 0, 0), (210, 9, 9)))
    >>> x, y, z = ImageDescriptors()([black, red, rose])
    >>> bool(x @ y < 0.1), bool(y @ z > 0.9)
    (True, True)
    """

    name: str = "descriptors"
    width: int = _CELLS**2 * (6 + _ANGLES) + _HUES * _CHROMAS * _VALUES
    versions: Mapping[str, str] = field(default_factory=lambda: {"numpy": np.__version__})

    def __call__(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Vectors of shape (n, 512)."""
        small = np.array([downsample(image) for image in images], np.float32).reshape(-1, _SIDE, _SIDE, 3)
        cells = _split_cells(small)
        colours = np.concatenate([cells.mean(axis=2), cells.std(axis=2)], axis=2)
        blocks = [_to_shares(block) for block in (colours, _edge_block(small), _histogram_block(small))]
        return l2_normalize(np.sqrt(np.concatenate(blocks, axis=1))).astype(np.float32)


def downsample(image: Image) -> NDArray[np.float32]:
    """Average 64 x 64 equal parts of the image (pixels repeated where it is smaller), from 0 to 1."""
    rows, columns = (np.arange(_SIDE + 1) * length // _SIDE for length in image.shape[:2])
    sums = np.add.reduceat(image, rows[:-1], axis=0, dtype=np.uint32)
    sums = np.add.reduceat(sums, columns[:-1], axis=1)
    areas = np.multiply.outer(*(np.maximum(np.diff(edges), 1) for edges in (rows, columns)))
    return np.asarray(sums / (255 * areas[..., None]), np.float32)


def _to_shares(block: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, ...) -> (n, k): the numbers of each image as shares of their sum, or 0 where that is 0."""
    flat = block.reshape(len(block), math.prod(block.shape[1:])).astype(np.float64)
    sums = flat.sum(axis=1, keepdims=True)
    return np.asarray(flat / np.where(sums > 0, sums, 1))


def _split_cells(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, 64, 64, k) -> (n, 16, 256, k): the pixels of each cell."""
    (n, *_, channels), side = pixels.shape, _SIDE // _CELLS
    split = pixels.reshape(n, _CELLS, side, _CELLS, side, channels).swapaxes(2, 3)
    return split.reshape(n, _CELLS**2, side**2, channels)


def _edge_block(small: NDArray[np.float32]) -> NDArray[np.float32]:
    down, right = np.gradient(small.mean(axis=3), axis=(1, 2))
    angle = np.arctan2(down, right) * np.float32(_ANGLES / np.pi) % _ANGLES
    distance = np.abs(angle[..., None] - np.arange(_ANGLES, dtype=np.float32))
    shared = np.maximum(0, 1 - np.minimum(distance, _ANGLES - distance))  # the angles are a circle
    return np.asarray(_split_cells(np.hypot(down, right)[..., None] * shared).sum(axis=2))


def _histogram_block(small: NDArray[np.float32]) -> NDArray[np.float32]:
    n = len(small)
    red, green, blue = np.moveaxis(small, 3, 0)
    value = small.max(axis=3)
    chroma = value - small.min(axis=3)
    parts = np.where(chroma > 0, chroma, 1)
    under_red, under_green, under_blue = (green - blue) / parts % 6, 2 + (blue - red) / parts, 4 + (red - green) / parts
    hue = np.select([value == red, value == green], [under_red, under_green], under_blue)
    level = _bin_index(np.sqrt(chroma), _CHROMAS)
    hue_bin = np.where(level > 0, _bin_index(hue / 6, _HUES), 0)
    index = (hue_bin * _CHROMAS + level) * _VALUES + _bin_index(value, _VALUES)
    bins = _HUES * _CHROMAS * _VALUES
    counted = np.bincount((index + bins * np.arange(n)[:, None, None]).ravel(), minlength=n * bins)
    return counted.reshape(n, bins).astype(np.float32)


def _bin_index(share: NDArray[np.float32], bins: int) -> NDArray[np.intp]:
    """Tell which of so many equal parts of 0 to 1 a number falls into."""
    return np.minimum((share * bins).astype(np.intp), bins - 1)
