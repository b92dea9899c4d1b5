"""Arrays and images as text that a page can carry."""

import base64
import io

import numpy as np
from PIL import Image


def pack(array: np.ndarray) -> str:
    """Return the bytes of an array, lowest first, in base64."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()


def sheet(images: np.ndarray, columns: int, quality: int | None = None) -> str:
    """Return images with values in [0, 1], shape (n, c, h, w), side by side on one sheet, as a data URI.

    With a ``quality`` the sheet is a WebP with loss; without one it is a PNG, exact for colours, while grey images
    keep 16 levels.
    """
    n, c, h, w = images.shape
    rows = -(-n // columns)
    page = np.zeros((rows * columns, c, h, w))
    page[:n] = images
    page = page.reshape(rows, columns, c, h, w).transpose(0, 3, 1, 4, 2).reshape(rows * h, columns * w, c)
    page = np.round(255 * page).astype(np.uint8)
    picture, file = Image.fromarray(page if c == 3 else page[..., 0]), io.BytesIO()
    if quality is None:
        (picture if c == 3 else picture.quantize(16)).save(file, "PNG", optimize=True)
    else:
        picture.save(file, "WEBP", quality=quality, method=6)
    kind = "png" if quality is None else "webp"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
