"""Degradations of a page: blur, encoding, shape, noise, what is laid over it, and light; each one function."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from .font_files import default_font
from .fonts import TextFont

Generator = np.random.Generator


def jpeg(image: Image.Image, quality: int, _: Generator) -> Image.Image:
    """Encode once with JPEG at a quality of 1–95."""
    return _through(image, "JPEG", quality=quality)


def jpeg_repeat(image: Image.Image, times: int, _: Generator) -> Image.Image:
    """Save again and again at falling quality, moved by a pixel each time so that the blocks never line up."""
    for index in range(times):
        shifted = Image.new(image.mode, image.size, "white")
        shifted.paste(image, (index % 2, (index // 2) % 2))
        shifted = _through(shifted, "JPEG", quality=max(8, 60 - 3 * index))
        image = Image.new(image.mode, image.size, "white")
        image.paste(shifted, (-(index % 2), -((index // 2) % 2)))
    return image


def webp(image: Image.Image, quality: int, _: Generator) -> Image.Image:
    """Encode once with lossy WebP, the fastest method."""
    return _through(image.convert("RGB"), "WEBP", quality=quality, method=0).convert(image.mode)


def jpeg_small(image: Image.Image, level: tuple[int, float], _: Generator) -> Image.Image:
    """Shrink to a share of each side, encode with JPEG at a quality, and enlarge again."""
    quality, scale = level
    sent = _through(image.resize(_at_scale(image, scale), Image.Resampling.BICUBIC), "JPEG", quality=quality)
    return sent.resize(image.size, Image.Resampling.BICUBIC)


def webp_small(image: Image.Image, level: tuple[int, float], _: Generator) -> Image.Image:
    """Send it as a messenger does: shrunk to a share of each side, in lossy WebP of a quality, and enlarged again."""
    quality, scale = level
    small = image.convert("RGB").resize(_at_scale(image, scale), Image.Resampling.BICUBIC)
    sent = _through(small, "WEBP", quality=quality, method=0)
    return sent.resize(image.size, Image.Resampling.BICUBIC).convert(image.mode)


def resample(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Down and up again: detail is lost, the size and so the visual tokens stay."""
    return image.resize(_at_scale(image, scale), Image.Resampling.BICUBIC).resize(image.size, Image.Resampling.BICUBIC)


def shrink_nearest(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Drop whole rows and columns; the picture stays small."""
    return image.resize(_at_scale(image, scale), Image.Resampling.NEAREST)


def pixelate(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Average into blocks and show the blocks."""
    return image.resize(_at_scale(image, scale), Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


def dither(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Floyd–Steinberg to black and white at a lower resolution."""
    small = image.convert("L").resize(_at_scale(image, scale), Image.Resampling.BICUBIC)
    dots = small.convert("1", dither=Image.Dither.FLOYDSTEINBERG).convert("L")
    return dots.resize(image.size, Image.Resampling.BICUBIC).convert(image.mode)


def _at_scale(image: Image.Image, scale: float) -> tuple[int, int]:
    return max(1, round(image.width * scale)), max(1, round(image.height * scale))


def _through(image: Image.Image, form: str, **options: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return Image.open(buffer).convert(image.mode)


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


def gaussian_noise(image: Image.Image, sigma: float, generator: Generator) -> Image.Image:
    """Add normal noise; `sigma` in units of full white."""
    values = np.asarray(image, np.float32)
    return _picture(values + _field(values, generator) * np.float32(255 * sigma))


def shot(image: Image.Image, photons: float, generator: Generator) -> Image.Image:
    """Count photons: white is `photons` on average."""
    values = np.asarray(image, np.float32)
    expected = values * np.float32(photons / 255)
    many = photons >= 10  # a normal law then stands in for Poisson's at a third of the time
    counted = np.rint(expected + np.sqrt(expected) * _field(values, generator)) if many else generator.poisson(expected)
    return _picture(counted * np.float32(255 / photons))


def speckle(image: Image.Image, sigma: float, generator: Generator) -> Image.Image:
    """Multiply by noise: bright paper suffers, ink does not."""
    values = np.asarray(image, np.float32)
    return _picture(values * (1 + _field(values, generator) * np.float32(sigma)))


def salt_pepper(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Turn a share of the pixels black or white."""
    values = np.array(image)
    dice = generator.random(values.shape[:2], dtype=np.float32)
    values[dice < share / 2] = 0
    values[dice > 1 - share / 2] = 255
    return Image.fromarray(values)


def _field(values: NDArray[np.float32], generator: Generator) -> NDArray[np.float32]:
    noise = generator.standard_normal(values.shape[:2], dtype=np.float32)
    return noise if values.ndim == 2 else noise[:, :, None]


def _picture(values: NDArray[np.generic]) -> Image.Image:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def shadow(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """Darken towards one side with a soft edge, as a hand over the page does; the darkest part loses grey levels."""
    angle, middle = generator.uniform(0, 2 * math.pi), generator.uniform(0.35, 0.65)
    across = np.linspace(-0.5, 0.5, image.width, dtype=np.float32)[None, :] * math.cos(angle)
    down = np.linspace(-0.5, 0.5, image.height, dtype=np.float32)[:, None] * math.sin(angle)
    light = 1 - np.float32(strength) / (1 + np.exp(-(across + down + 0.5 - middle) * 14))
    return _scaled(image, light.astype(np.float32))


def cast_shadow(image: Image.Image, level: tuple[float, float], generator: Generator) -> Image.Image:
    """Darken a share of the page towards one side by a share of the light, with a soft edge: (light lost, area)."""
    strength, area = level
    angle = generator.uniform(0, 2 * math.pi)
    across = np.linspace(-0.5, 0.5, image.width, dtype=np.float32)[None, :] * math.cos(angle)
    down = np.linspace(-0.5, 0.5, image.height, dtype=np.float32)[:, None] * math.sin(angle)
    place = across + down
    edge = np.quantile(place[:: max(1, image.height // 64), :: max(1, image.width // 64)], 1 - area)
    light = 1 - np.float32(strength) / (1 + np.exp(np.clip(-(place - np.float32(edge)) * 40, -60, 60)))
    return _scaled(image, light.astype(np.float32))


def bleed_through(image: Image.Image, alpha: float, _: Generator) -> Image.Image:
    """Show the mirrored page itself through the paper, softened."""
    back = ImageOps.mirror(ImageChops.offset(image, 7, 5)).filter(ImageFilter.GaussianBlur(0.7))
    faint = back.point([round(255 - (255 - value) * alpha) for value in range(256)] * len(back.getbands()))
    return ImageChops.multiply(image, faint)


def watermark(image: Image.Image, alpha: float, generator: Generator) -> Image.Image:
    """Print a large slanted word many times over the page."""
    return overprint(image, (alpha, 0.55), generator)


def overprint(image: Image.Image, level: tuple[float, float], generator: Generator) -> Image.Image:
    """Print a large slanted word many times: (opacity, distance of its rows in its height)."""
    alpha, spacing = level
    font = TextFont(default_font(), max(12.0, image.width / 14))
    words = ("CONFIDENTIAL", "SPECIMEN", "DO NOT COPY")[int(generator.integers(3))]
    slanted = _stamp_of(words, font).rotate(float(generator.uniform(15, 40)), expand=True)
    cover = Image.new("L", image.size)
    step_y = max(20, round(slanted.height * spacing))
    for row, y in enumerate(range(-step_y, image.height, step_y)):
        for x in range(-(slanted.width // 2) * (row % 2), image.width, slanted.width):
            cover.paste(slanted, (x, y), slanted)
    mask = cover.point([round(value * alpha) for value in range(256)])
    return Image.composite(Image.new(image.mode, image.size, "#505050"), image, mask)


def _stamp_of(words: str, font: TextFont) -> Image.Image:
    pieces = [font.glyph(character) for character in words]
    stamp = Image.new("L", (sum(piece[3] for piece in pieces) + 8, round(font.size_px * 1.4)))
    pen = 4
    for bitmap, left, top, advance in pieces:
        if bitmap.size:
            stamp.paste(Image.fromarray(bitmap), (pen + left, font.ascent_px + top))
        pen += advance
    return stamp


def photocopy(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """A worn copier: toner specks, a dirty drum's vertical bands, patches where toner did not hold."""
    values = np.asarray(image, np.float32)
    height, width = values.shape[:2]
    coarse = Image.fromarray(generator.random((24, 18), dtype=np.float32))
    clouds = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    washed = np.clip((clouds - 0.75 + 0.45 * strength) * 3, 0, 1) * strength
    dirty = generator.random(width, dtype=np.float32) > 1 - 0.02 * strength
    bands = np.where(dirty, np.float32(110 * strength), np.float32(0))
    specks = (generator.random((height, width), dtype=np.float32) < 0.035 * strength**2) * np.float32(200)
    if values.ndim == 3:
        washed, specks = washed[:, :, None], specks[:, :, None]
    result = values + (255 - values) * washed - (bands[None, :] if values.ndim == 2 else bands[None, :, None]) - specks
    return Image.fromarray(np.clip(result, 0, 255).astype(np.uint8))


def low_ink(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """A clogged nozzle: whole rows of pixels stay white."""
    values = np.array(image)
    rows = generator.random(values.shape[0]) < share
    lost = values[rows].astype(np.int16)
    values[rows] = np.clip(lost + 190, 0, 255).astype(np.uint8)
    return Image.fromarray(values)


def moire(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """Photograph a screen: two line gratings, slightly off, beat over the page."""
    angle, period = generator.uniform(0.05, 0.4), generator.uniform(2.6, 3.4)
    across = np.arange(image.width, dtype=np.float32)[None, :]
    down = np.arange(image.height, dtype=np.float32)[:, None]
    first = np.sin((across * math.cos(angle) + down * math.sin(angle)) * np.float32(2 * math.pi / period))
    second = np.sin((down * math.cos(angle) - across * math.sin(angle)) * np.float32(2 * math.pi / (period * 1.07)))
    light = 1 - np.float32(strength) * (0.5 + 0.25 * (first + second))
    return _scaled(image, light.astype(np.float32))


def occlude(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Cover `share` of the area with grey slips of a few words each."""
    covered = image.copy()
    draw = ImageDraw.Draw(covered)
    width, height = max(4, image.width // 9), max(4, image.height // 40)
    for _ in range(max(1, round(share * image.width * image.height / (width * height)))):
        x, y = int(generator.integers(-width // 2, image.width)), int(generator.integers(-height // 2, image.height))
        draw.rectangle((x, y, x + width, y + height), fill="#808080")
    return covered


def _scaled(image: Image.Image, light: NDArray[np.float32]) -> Image.Image:
    values = np.asarray(image)
    return Image.fromarray((values * (light if values.ndim == 2 else light[:, :, None])).astype(np.uint8))


def bit_depth(image: Image.Image, levels: int, _: Generator) -> Image.Image:
    """Keep only `levels` evenly spaced values of each channel."""
    return _mapped(image, np.round(np.arange(256) / 255 * (levels - 1)) * 255 / (levels - 1))


def binarise(image: Image.Image, threshold: int, _: Generator) -> Image.Image:
    """Black below the threshold, white from it on; a low threshold eats thin strokes."""
    return _mapped(image.convert("L"), np.where(np.arange(256) < threshold, 0.0, 255.0)).convert(image.mode)


def contrast(image: Image.Image, factor: float, _: Generator) -> Image.Image:
    """Squeeze all values towards middle grey."""
    return _mapped(image, 128 + (np.arange(256) - 128) * factor)


def mean_contrast(image: Image.Image, factor: float, _: Generator) -> Image.Image:
    """Squeeze all values towards the picture's own mean."""
    mean = float(np.asarray(image.convert("L")).mean())
    return _mapped(image, mean + (np.arange(256) - mean) * factor)


def brightness(image: Image.Image, darkening: float, _: Generator) -> Image.Image:
    """Underexpose: white becomes `1 - darkening`, rounded to whole grey levels as a camera would."""
    return _mapped(image, np.round(np.arange(256) * (1 - darkening)))


def add_brightness(image: Image.Image, amount: float, _: Generator) -> Image.Image:
    """Overexpose by a constant."""
    return _mapped(image, np.arange(256) + 255 * amount)


def gamma(image: Image.Image, exponent: float, _: Generator) -> Image.Image:
    """Wash out: values to the power of `exponent` below 1, ink lifted as stray light does."""
    return _mapped(image, 255 * ((np.arange(256) / 255 + 0.02) / 1.02) ** exponent)


def ink_fade(image: Image.Image, ratio: float, _: Generator) -> Image.Image:
    """Print in grey on white with a contrast ratio as the web guidelines count it ((1.05) / (ink + 0.05))."""
    luminance = 1.05 / ratio - 0.05
    ink = 255 * (1.055 * luminance ** (1 / 2.4) - 0.055)
    return _mapped(image, ink + (255 - ink) * np.arange(256) / 255)


def thin(image: Image.Image, amount: float, _: Generator) -> Image.Image:
    """Eat strokes from their edges: a mix with the picture whose dark parts shrank by a pixel."""
    return Image.blend(image, image.filter(ImageFilter.MaxFilter(3)), amount)


def erode(image: Image.Image, share: float, _: Generator) -> Image.Image:
    """Eat strokes from their edges: only where at least `share` of the ink around a point is left does it stay."""
    soft = 255 - np.asarray(image.filter(ImageFilter.GaussianBlur(0.5)), np.float32)
    kept = np.clip((soft / 255 - share) / (1 - share), 0, 1) ** 0.5
    return Image.fromarray(np.asarray(255 - 255 * kept + 0.5, np.uint8))


def coarse(image: Image.Image, level: tuple[int, float], generator: Generator) -> Image.Image:
    """Keep `levels` values of grey, after noise of a share of their distance: what a coarse converter makes of it."""
    levels, share = level
    step = 255 / (levels - 1)
    values = np.asarray(image, np.float32)
    noise = generator.standard_normal(values.shape[:2], dtype=np.float32) * np.float32(share * step)
    rounded = np.round((values + (noise if values.ndim == 2 else noise[:, :, None])) / step) * step
    return Image.fromarray(np.clip(rounded, 0, 255).astype(np.uint8))


def bold(image: Image.Image, amount_px: float, _: Generator) -> Image.Image:
    """Swell strokes until letters close up."""
    grown = image
    while amount_px >= 1:
        grown = grown.filter(ImageFilter.MinFilter(3))
        amount_px -= 1
    return Image.blend(grown, grown.filter(ImageFilter.MinFilter(3)), amount_px) if amount_px > 0 else grown


def fog(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    """Lay bright clouds of several sizes over the picture and squeeze the rest beneath."""
    cloud = np.zeros((image.height, image.width), np.float32)
    for octave in range(2, 8):
        cells = generator.random((2**octave, 2**octave), dtype=np.float32)
        layer = Image.fromarray(cells).resize(image.size, Image.Resampling.BILINEAR)
        cloud += np.asarray(layer) / 2 ** (octave - 2)
    cloud = (cloud - cloud.min()) / max(1e-6, float(cloud.max() - cloud.min()))
    values = np.asarray(image, np.float32) / 255
    peak = float(values.max())
    veil = amount * (cloud if values.ndim == 2 else cloud[:, :, None])
    return Image.fromarray(np.clip((values + veil) * peak / (peak + amount) * 255, 0, 255).astype(np.uint8))


def _mapped(image: Image.Image, table: NDArray[np.floating[Any]]) -> Image.Image:
    values = np.clip(np.round(table), 0, 255).astype(int).tolist()
    return image.point(values * len(image.getbands()))


_FEW = 80
"""Up to so many kernel points shifted sums are faster than a Fourier transform (measured on an A4 page at 96 dpi)."""


def gaussian_blur(image: Image.Image, sigma_px: float, _: Generator) -> Image.Image:
    """Blur with a Gaussian of `sigma_px`."""
    return image.filter(ImageFilter.GaussianBlur(sigma_px))


def defocus(image: Image.Image, radius_px: float, _: Generator) -> Image.Image:
    """Spread every point over a disk."""
    reach = math.ceil(radius_px)
    fine = (np.arange(-reach * 5 - 2, reach * 5 + 3) / 5.0) ** 2
    disk = (fine[:, None] + fine[None, :] <= radius_px**2).astype(np.float32)
    side = 2 * reach + 1
    return _convolved(image, disk.reshape(side, 5, side, 5).sum(axis=(1, 3)))


def motion(image: Image.Image, length_px: int, generator: Generator) -> Image.Image:
    """Smear along a line of `length_px` at a random angle."""
    angle = generator.uniform(0, math.pi)
    reach = math.ceil(length_px / 2)
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    for step in np.linspace(-length_px / 2, length_px / 2, 4 * length_px):
        kernel[reach + round(step * math.sin(angle)), reach + round(step * math.cos(angle))] += 1
    return _convolved(image, kernel)


def glass(image: Image.Image, level: tuple[float, float, int], generator: Generator) -> Image.Image:
    """Blur, swap pixels with near ones, blur: (sigma, reach in pixels, rounds)."""
    sigma, reach, rounds = level
    values = np.asarray(image.filter(ImageFilter.GaussianBlur(sigma)))
    height, width = values.shape[:2]
    rows, columns = np.arange(height, dtype=np.int32)[:, None], np.arange(width, dtype=np.int32)[None, :]
    for _ in range(rounds):
        shares = generator.random((2, height, width), dtype=np.float32) - 0.5
        moves = np.rint(shares * np.float32(2 * reach)).astype(np.int32)
        values = values[np.clip(rows + moves[0], 0, height - 1), np.clip(columns + moves[1], 0, width - 1)]
    return Image.fromarray(values).filter(ImageFilter.GaussianBlur(sigma / 2))


def zoom(image: Image.Image, largest: float, _: Generator) -> Image.Image:
    """Average the picture with enlargements of itself, as when zooming during exposure."""
    total = np.asarray(image, np.float32).copy()
    factors = np.linspace(1.0, largest, 9)[1:]
    for factor in factors:
        margin_x, margin_y = image.width * (1 - 1 / factor) / 2, image.height * (1 - 1 / factor) / 2
        box = (margin_x, margin_y, image.width - margin_x, image.height - margin_y)
        total += np.asarray(image.resize(image.size, Image.Resampling.BILINEAR, box=box), np.float32)
    return Image.fromarray((total / (len(factors) + 1)).astype(np.uint8))


def _convolved(image: Image.Image, kernel: NDArray[np.float32]) -> Image.Image:
    kernel = kernel / kernel.sum()
    reach = kernel.shape[0] // 2
    bands = [Image.fromarray(_convolve(np.asarray(band), kernel, reach)) for band in image.split()]
    return Image.merge(image.mode, bands)


def _convolve(band: NDArray[np.uint8], kernel: NDArray[np.float32], reach: int) -> NDArray[np.uint8]:
    padded = np.pad(band, reach, mode="edge").astype(np.float32)
    height, width = band.shape
    points = np.argwhere(kernel > 0)
    if len(points) > _FEW:
        shape = (padded.shape[0] + 2 * reach, padded.shape[1] + 2 * reach)
        product = np.fft.rfft2(padded, shape) * np.fft.rfft2(kernel, shape)
        total = np.fft.irfft2(product, shape)[2 * reach : 2 * reach + height, 2 * reach : 2 * reach + width]
    else:
        total = np.zeros((height, width), np.float32)
        for row, column in points:
            total += padded[row : row + height, column : column + width] * np.float32(kernel[row, column])
    return np.asarray(np.clip(total + 0.5, 0, 255), np.uint8)
