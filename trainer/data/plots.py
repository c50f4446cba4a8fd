"""The page's plots as inline SVG. Colours are the page's own (CSS variables), so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from trainer.data.lengths import Bar, Summary

WIDTH, HEIGHT = 880, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 34, 46
_TICKS = 5


def histogram(found: Summary, unit: str, limit: int = 0) -> str:
    """Rows by length; the median, the mean, the 99% line, and the limit where there is one that is in sight."""
    bars = found.histogram
    width = bars[0].high or 1
    end = bars[-1].low + width
    most = _ceiling(max(bar.count for bar in bars))
    body = [*_grid(most), *_bars(bars, width, end, most, limit), *_axis(bars, width, end, unit), *_marks(found, end, limit)]
    title = f"Rows by {unit}: median {found.median:,}, mean {found.mean:,.1f}, largest {found.largest:,}"
    return _svg(WIDTH, HEIGHT, title, body)


def _x(value: float, end: int) -> float:
    return _LEFT + value / end * (WIDTH - _LEFT - _RIGHT)


def _y(count: float, most: int) -> float:
    return HEIGHT - _BOTTOM - count / most * (HEIGHT - _TOP - _BOTTOM)


def _ceiling(most: int) -> int:
    """The next number whose fifth is round, so that ticks are whole numbers."""
    step = 1
    while True:
        for nice in (1, 2, 3, 4, 5, 6, 8):
            if nice * step * _TICKS >= most:
                return nice * step * _TICKS
        step *= 10


def _grid(most: int) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        count = most * tick // _TICKS
        y = _y(count, most)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 8, y + 4, f"{count:,}", "end")


def _bars(bars: tuple[Bar, ...], width: int, end: int, most: int, limit: int) -> Iterator[str]:
    for bar in bars:
        if not bar.count:
            continue
        left, right, top = _x(bar.low, end), _x(bar.low + width, end), _y(bar.count, most)
        over = " over" if limit and bar.low >= limit else ""
        said = f"{bar.low:,} to {bar.high - 1:,}" if bar.high else f"{bar.low:,} and more"
        shape = f'x="{left + 0.75:.1f}" y="{top:.1f}" width="{right - left - 1.5:.1f}" height="{HEIGHT - _BOTTOM - top:.1f}"'
        yield f'<rect class="bar{over}" rx="1.5" {shape}><title>{said}: {bar.count:,} rows</title></rect>'


def _axis(bars: tuple[Bar, ...], width: int, end: int, unit: str) -> Iterator[str]:
    """A tick every few bars; the last bar is everything beyond."""
    every = max(len(bars) // 8, 1)
    beyond = bars[-1].high is None
    for number, bar in enumerate(bars):
        if number % every == 0 and not (beyond and number > len(bars) - 1 - max(every / 2, 1)):
            yield _text(_x(bar.low, end), HEIGHT - _BOTTOM + 18, f"{bar.low:,}", "middle")
    if beyond:
        yield _text(_x(bars[-1].low + width / 2, end), HEIGHT - _BOTTOM + 18, "more", "middle")
    yield _text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 8, f"{unit} a row", "middle")


def _marks(found: Summary, end: int, limit: int) -> Iterator[str]:
    marks = [("median", found.median, ""), ("99%", found.p99, "")]
    if 0 < limit < end:
        marks.append(("limit", limit, " limit"))
    taken: list[float] = []
    for name, value, kind in marks:
        x = _x(value, end)
        y = 14.0 + 12 * sum(abs(x - other) < 90 for other in taken)
        taken.append(x)
        yield f'<line class="mark{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 4:.1f}" y2="{HEIGHT - _BOTTOM}"/>'
        anchor = "end" if x > WIDTH - 110 else "start"
        yield _text(x + (-5 if anchor == "end" else 5), y + 4, f"{name} {value:,}", anchor, f"mark{kind}")


def shares(counts: Mapping[str, int]) -> str:
    """One bar in parts, with what each of them is written below it."""
    total = sum(counts.values())
    parts = [(name, count) for name, count in counts.items() if count]
    left, body = 0.0, []
    for number, (name, count) in enumerate(parts):
        width = count / total * WIDTH
        said = f"<title>{escape(name)}: {count:,} rows</title>"
        body.append(
            f'<rect class="part{number % 6}" x="{left:.1f}" y="0" width="{max(width - 2, 1):.1f}" height="26" rx="3">{said}</rect>'
        )
        left += width
    x = 0.0
    for number, (name, count) in enumerate(parts):
        body.append(f'<rect class="part{number % 6}" x="{x:.1f}" y="38" width="11" height="11" rx="2"/>')
        legend = f"{name} {count:,} ({count / total:.1%})"
        body.append(_text(x + 17, 48, legend, "start", "legend"))
        x += 17 + 8.2 * len(legend) + 18
    return _svg(WIDTH, 56, "Shares: " + ", ".join(f"{name} {count:,}" for name, count in parts), body)


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(width: int, height: int, title: str, body: list[str]) -> str:
    named = f'role="img" aria-label="{escape(title)}"'
    return f'<svg viewBox="0 0 {width} {height}" {named}>' + "".join(body) + "</svg>"
