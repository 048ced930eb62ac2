"""The table which builders fill and renderers print, and its colours.

Colours are safe for colour-blind readers: light tints of the Okabe-Ito set under dark text, and for
degrees a single blue ramp whose lightness falls, so that grey print keeps the order.
"""

from __future__ import annotations

from dataclasses import field, replace

from flydsl.utils.record import record

TINTS = (
    "#cfe8fa",  # sky blue
    "#fde3b5",  # orange
    "#bfe6d9",  # green
    "#f6d3e4",  # purple
    "#fbf6b0",  # yellow
    "#c3d7ea",  # blue
    "#f7cdb9",  # vermilion
    "#e3e3e3",  # grey
)
RAMP = ("#eef4fa", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")
TERMINAL_TINTS = (153, 222, 151, 218, 229, 110, 216, 252)
TERMINAL_RAMP = (255, 153, 117, 75, 68, 26, 18)
DARK_FROM = 5  # ramp steps from here on need light text


@record
class Cell:
    """One place: what is written large and small, and its colour.

    `tint` counts through TINTS without end; with `ramp` it is a step of RAMP. `paint` ("#rrggbb") goes before both,
    except on a terminal. A marked cell is framed.
    """

    text: str
    small: str = ""
    tint: int = 0
    ramp: bool = False
    mark: bool = False
    paint: str = ""

    @property
    def fill(self) -> str:
        if self.paint:
            return self.paint
        return RAMP[min(self.tint, len(RAMP) - 1)] if self.ramp else TINTS[self.tint % len(TINTS)]

    @property
    def terminal_fill(self) -> int:
        if self.ramp:
            return TERMINAL_RAMP[min(self.tint, len(TERMINAL_RAMP) - 1)]
        return TERMINAL_TINTS[self.tint % len(TERMINAL_TINTS)]

    @property
    def is_dark(self) -> bool:
        if self.paint:
            red, green, blue = (int(self.paint[i : i + 2], 16) for i in (1, 3, 5))
            return 0.299 * red + 0.587 * green + 0.114 * blue < 128  # luma of ITU-R BT.601
        return self.ramp and self.tint >= DARK_FROM


@record
class Picture:
    """Rows of cells (None: empty place), a title, a caption, and labels of rows and columns."""

    title: str
    rows: tuple[tuple[Cell | None, ...], ...]
    row_labels: tuple[str, ...]
    col_labels: tuple[str, ...]
    caption: str = ""
    beside: tuple[Picture, ...] = field(default=())

    def __post_init__(self):
        assert all(len(r) == len(self.col_labels) for r in self.rows), "rows and columns disagree"

    def transposed(self) -> Picture:
        """Return the picture with rows and columns exchanged."""
        return replace(self, rows=tuple(zip(*self.rows)), row_labels=self.col_labels, col_labels=self.row_labels)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(c for row in self.rows for c in row if c is not None)

    @property
    def widest(self) -> int:
        """Return the number of characters of the longest line in a cell."""
        return max((max(len(c.text), len(c.small)) for c in self.cells), default=1)

    @property
    def has_small(self) -> bool:
        return any(c.small for c in self.cells)
