"""Degradations of shape: rotation, perspective, rubber sheet, page curl, cut margins; paper fills what opens."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Generator = np.random.Generator
_CELL = 24
"""Mesh cell in pixels: within one the bend is taken as straight."""


def paper_colour(image: Image.Image) -> int | tuple[int, ...]:
    """Return the most frequent value: the page's background."""
    if image.mode == "L":
        return int(np.argmax(image.histogram()))
    return tuple(int(np.argmax(band.histogram())) for band in image.split())


def rotate(image: Image.Image, degrees: float, generator: Generator) -> Image.Image:
    """Turn about the middle, either way; corners may leave the picture as on a scanner."""
    return image.rotate(degrees * _sign(generator), Image.Resampling.BICUBIC, fillcolor=paper_colour(image))


def perspective(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Move each corner inwards by up to `share` of the page, at least half of it."""
    width, height = image.size
    moves = generator.uniform(0.5, 1.0, size=(4, 2)) * share * np.array([width, height])
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], float)
    inwards = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    matrix, paper = _homography(target + moves * inwards, target), paper_colour(image)
    return image.transform(image.size, Image.Transform.PERSPECTIVE, matrix, Image.Resampling.BICUBIC, fillcolor=paper)


def elastic(image: Image.Image, strength_px: float, generator: Generator) -> Image.Image:
    """Pull the page about like a rubber sheet by up to a few pixels over the length of a word."""
    rows, columns = image.height // _CELL + 2, image.width // _CELL + 2
    coarse = generator.uniform(-1, 1, size=(2, rows, columns))
    return _meshed(image, coarse * strength_px)


def curl(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Bend lines as a bound book does: an arch whose height is `share` of the page's width."""
    rows, columns = image.height // _CELL + 2, image.width // _CELL + 2
    across = np.linspace(0, 1, columns)
    arch = np.cosh(3 * (across if generator.random() < 0.5 else 1 - across)) / math.cosh(3)
    moves = np.zeros((2, rows, columns))
    moves[1] = arch * share * image.width
    return _meshed(image, moves)


def crop(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Feed the page askew: shift it so that `share` of the text falls off at one side and the top or bottom."""
    dx, dy = round(image.width * share) * _sign(generator), round(image.height * share / 2) * _sign(generator)
    moved = Image.new(image.mode, image.size, paper_colour(image))
    moved.paste(image, (dx, dy))
    return moved


def _sign(generator: Generator) -> int:
    return 1 if generator.random() < 0.5 else -1


def _homography(source: NDArray[np.float64], target: NDArray[np.float64]) -> list[float]:
    """Solve the eight coefficients that take points of `source` to `target`."""
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    solved: list[float] = np.linalg.solve(np.array(rows), target.reshape(8)).tolist()
    return solved


def _meshed(image: Image.Image, moves: NDArray[np.float64]) -> Image.Image:
    """Warp by a grid of (dx, dy): each cell is a quadrilateral of the source, drawn by Pillow."""
    _, rows, columns = moves.shape
    mesh = []
    for row in range(rows - 1):
        for column in range(columns - 1):
            x0, y0 = column * _CELL, row * _CELL
            box = (x0, y0, min(x0 + _CELL, image.width), min(y0 + _CELL, image.height))
            if box[2] > x0 and box[3] > y0:
                quad = [
                    edge + float(moves[axis, row + down, column + right])
                    for right, down in ((0, 0), (0, 1), (1, 1), (1, 0))  # anticlockwise from the upper left
                    for axis, edge in enumerate((box[2 * right], box[2 * down + 1]))
                ]
                mesh.append((box, quad))
    paper = paper_colour(image)
    return image.transform(image.size, Image.Transform.MESH, mesh, Image.Resampling.BILINEAR, fillcolor=paper)
