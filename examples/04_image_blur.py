"""5x5 box blur of a photograph: each workgroup keeps its tile and a halo of two pixels in LDS. Writes 04_image_blur.png beside this file."""

import pathlib

import numpy as np
import pywt.data
from PIL import Image

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

TILE, RADIUS = 16, 2
HALO = TILE + 2 * RADIUS


@flyc.kernel(known_block_size=(TILE, TILE, 1))
def blur(src: fx.Tensor, dst: fx.Tensor, height: fx.Int32, width: fx.Int32):
    tx, ty = fx.thread_idx.x, fx.thread_idx.y
    x0, y0 = fx.block_idx.x * TILE - RADIUS, fx.block_idx.y * TILE - RADIUS
    tile = fx.SharedAllocator().allocate(fx.Array[fx.Float32, HALO * HALO]).peek()
    halo = tile.view(fx.make_layout((HALO, HALO), (HALO, 1)))

    for dy in fx.range_constexpr(0, HALO, TILE):
        for dx in fx.range_constexpr(0, HALO, TILE):
            sy, sx = ty + dy, tx + dx
            if (sy < HALO) & (sx < HALO):
                y = fx.min(fx.max(y0 + sy, 0), height - 1)  # the border repeats
                x = fx.min(fx.max(x0 + sx, 0), width - 1)
                halo[sy, sx] = src[y, x]
    fx.barrier()

    total = fx.Float32(0.0)
    for dy in fx.range_constexpr(2 * RADIUS + 1):
        for dx in fx.range_constexpr(2 * RADIUS + 1):
            total = total + halo[ty + dy, tx + dx]
    y, x = y0 + RADIUS + ty, x0 + RADIUS + tx
    if (y < height) & (x < width):
        dst[y, x] = total * (1.0 / (2 * RADIUS + 1) ** 2)


@flyc.jit
def launch(src: fx.Tensor, dst: fx.Tensor, height: fx.Int32, width: fx.Int32):
    grid = ((width + TILE - 1) // TILE, (height + TILE - 1) // TILE)
    blur(src, dst, height, width).launch(grid=grid, block=(TILE, TILE, 1))


def reference(image: np.ndarray) -> np.ndarray:
    padded = np.pad(image.astype(np.float64), RADIUS, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * RADIUS + 1,) * 2)
    return windows.mean(axis=(2, 3))


def main() -> None:
    image = pywt.data.camera()[:509, :403].astype(np.float32)  # no multiple of the tile
    image = np.ascontiguousarray(image)
    out = np.full_like(image, np.nan)
    launch(image, out, *image.shape)
    if env.compile.compile_only:
        print(f"compiled blur {image.shape[0]}x{image.shape[1]}")
        return
    error = np.abs(out - reference(image)).max()
    assert error <= 1e-3, f"error {error}"
    path = pathlib.Path(__file__).with_suffix(".png")
    Image.fromarray(np.hstack([image, out]).round().clip(0, 255).astype(np.uint8)).save(path)
    print(f"PASS blur {image.shape[0]}x{image.shape[1]}: worst error {error:.1e}, picture in {path.name}")


if __name__ == "__main__":
    main()
