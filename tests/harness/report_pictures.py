"""The pictures of docs/reports.md, of two replays of the example's first weeks: `make pictures`."""

from __future__ import annotations

import base64
import sys
import zlib
from pathlib import Path
from struct import pack, unpack

from browser import Browser, browser

WIDTH = 860


def shrunk(png: bytes) -> bytes:
    """The same picture packed as tightly as zlib can."""
    out, data, at = png[:8], b"", 8
    while at < len(png):
        (length,) = unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IDAT":
            data += body
            continue
        if kind == b"IEND":
            body_of = zlib.compress(zlib.decompress(data), 9)
            out += chunk(b"IDAT", body_of)
        out += chunk(kind, body)
    return out


def chunk(kind: bytes, body: bytes) -> bytes:
    return pack(">I", len(body)) + kind + body + pack(">I", zlib.crc32(kind + body))


def shot(window: Browser, path: Path, first: str, last: str) -> None:
    """From the top of one element to the bottom of another, each named by a selector."""
    window.wait("return new Promise(done => setTimeout(() => done(true), 400))")
    box = window.run(
        "const [a, b] = [...arguments].map(s => document.querySelector(s).getBoundingClientRect());"
        "const left = Math.min(a.left, b.left) - 6, right = Math.max(a.right, b.right) + 6;"
        "const width = right - left, height = b.bottom - a.top + 12;"
        "return {x: left, y: a.top - 6, width, height, scale: 1}",
        first,
        last,
    )
    png = window.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": box})[
        "data"
    ]
    path.write_bytes(shrunk(base64.b64decode(png)))
    print(f"{path} {path.stat().st_size:,} bytes")


def main(report: Path, beside: Path, folder: Path) -> None:
    with browser() as window:
        window.look(WIDTH, 4000)
        window.open(report)
        shot(window, folder / "jobs-by-node.png", "#legend", "#use")
        window.run("page.show(1036800, 1209600); page.gantts[0].nodes = [100, 124]; page.redraw()")
        shot(window, folder / "zoomed.png", "#legend", "#gantts")
        shot(window, folder / "heat.png", "#heat", "#heat")
        window.look(WIDTH, 4000, scheme="dark")
        window.open(beside)
        shot(window, folder / "beside.png", "#waits", "#slowdowns")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
