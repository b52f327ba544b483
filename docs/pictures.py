"""Takes pictures of a page in a browser, and makes them small without another program."""

import base64
import struct
import zlib
from typing import Any

from tests.browser.page import Page

# Width, least and largest height, pixels per point, colour scheme.
WAYS: dict[str, tuple[int, int, int, int, str]] = {
    "light": (1440, 900, 1200, 1, "light"),
    "dark": (1440, 900, 1200, 1, "dark"),
    "phone": (390, 844, 844, 2, "light"),
    "wide": (1920, 1080, 1080, 1, "light"),
    "front": (1440, 900, 900, 1, "light"),
}
COLOURS = 256
# Waits until the height of the page has not changed for a while, and returns it.
SETTLED = """(async () => {
  scrollTo(0, 0);
  const { scrollingElement: page } = document;
  for (let [height, since] = [0, 0]; since < 5; since += 1) {
    await new Promise((wake) => setTimeout(wake, 100));
    if (height !== page.scrollHeight) [height, since] = [page.scrollHeight, 0];
  }
  return page.scrollHeight;
})()"""
# Returns the picture's palette, and the nearest colour of each pixel. First the most used colour of each
# group of similar ones is kept, so that a small dot keeps its colour; then the most used of all.
REDUCED = """(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,%s";
  await image.decode();
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const pixels = new Uint32Array(canvas.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const one of pixels) counts.set(one, (counts.get(one) ?? 0) + 1);
  const used = [...counts].sort((a, b) => b[1] - a[1]).map(([one]) => one);
  const alike = new Map(used.toReversed().map((one) => [one & 0xe0e0e0, one]));
  const most = [...new Set([...[...alike.values()].reverse(), ...used])].slice(0, %d);
  const split = (one) => [one & 255, (one >> 8) & 255, (one >> 16) & 255];
  const known = most.map(split);
  const nearest = (one) => {
    const [r, g, b] = split(one);
    const far = known.map(([x, y, z]) => (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2);
    return far.indexOf(Math.min(...far));
  };
  const index = new Map([...counts.keys()].map((one) => [one, nearest(one)]));
  let text = "";
  for (const one of pixels) text += String.fromCharCode(index.get(one));
  return { width, height, colours: known.flat(), pixels: btoa(text) };
})()"""


def look(page: Page, way: str) -> None:
    """Show the page in one layout, with as much height as fits one picture."""
    width, least, most, scale, colours = WAYS[way]
    wanted = {"prefers-color-scheme": colours, "prefers-reduced-motion": "reduce"}
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": name, "value": is_} for name, is_ in wanted.items()]
    )
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    page.call("Emulation.setTouchEmulationEnabled", enabled=way.startswith("phone"))
    page.evaluate(
        "void (document.documentElement.style.scrollbarGutter = 'auto')"
    )  # where it would have been
    size = {"width": width, "deviceScaleFactor": scale, "mobile": way == "phone"}
    page.call("Emulation.setDeviceMetricsOverride", height=least, **size)
    height = page.evaluate(SETTLED)
    page.call("Emulation.setDeviceMetricsOverride", height=max(least, min(height, most)), **size)
    page.evaluate(SETTLED)


def taken(page: Page, desk: Page) -> bytes:
    """A PNG of a page; another page, of any content, reduces its colours."""
    shot: str = page.call("Page.captureScreenshot", format="png")["data"]
    return encoded(desk.evaluate(REDUCED % (shot, COLOURS), limit_s=60))


def encoded(picture: dict[str, Any]) -> bytes:
    """A PNG of at most 256 colours."""
    width, height = picture["width"], picture["height"]
    pixels = base64.b64decode(picture["pixels"])
    lines = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"PLTE", bytes(picture["colours"])),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
