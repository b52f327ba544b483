"""A plugin: a folder with plugin.json and plain scripts, checked, and joined with the SDK (B2)."""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot import state
from afoot.core.facts import NOTHING
from afoot.errors import CallerError
from afoot.providers.browser import patterns
from afoot.wire.room import Body, PageTool

MANIFEST = "plugin.json"
FILE_BYTES = 1_000_000
ALL_BYTES = 5_000_000
NAMES = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TOOLS = re.compile(r"[A-Za-z0-9_-]{1,64}")
WORD = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
MODULE = re.compile(r"^(import|export)\b\s*[\w*{\"']", re.MULTILINE)  # of a module; not `import(…)` or a key
RESERVED = ("afoot",)  # the gateway's own tools begin with it
EXTENSION = Path(__file__).parent.parent.parent / "extension"
PARTS = "content/files.json"  # what every room is made of
SDK = (
    "sdk/files.json"  # the files of the SDK in order, those that only a room needs, and what plugins may use
)


class Probe(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must be there before the tools can run: an element, or a value of the page that counts as true."""

    selector: str = ""
    value: str = ""


class Declared(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A tool as plugin.json may list it, with the words of `defineTool`."""

    name: str
    display_name: str = ""
    description: str = ""
    icon: str = ""
    input: dict[str, Any] = {}
    output: dict[str, Any] = {}
    annotations: dict[str, Any] = {}


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What plugin.json says."""

    name: str
    version: str
    matches: list[str]
    files: list[str]
    display_name: str = ""
    description: str = ""
    excludes: list[str] = []
    homepage: str = ""
    readiness: str | Probe = ""
    tools: list[Declared] = []


class Plugin(Struct, frozen=True):
    """A plugin that can be run. The hash is that of all its code; `tools` are known with no tab open."""

    name: str
    version: str
    hash: str
    matches: list[str]
    excludes: list[str]
    title: str
    description: str
    homepage: str
    tools: list[PageTool]
    key: str  # names it to its carrier; the same for the same code, and nobody else can know it
    body: str  # the SDK, which opens the room
    code: str  # its own files, which the SDK runs
    folder: Path
    files: list[Path]

    @property
    def source(self) -> str:
        """Which code this is, as rooms, approvals and people name it."""
        return f"plugin:{self.name}@{self.hash}"

    @property
    def start(self) -> str:
        """Which page to open where none is open."""
        return self.homepage or self.matches[0]

    def wire(self) -> Body:
        """What a browser gets."""
        return Body(self.name, self.hash, self.key, self.matches, self.excludes, self.body, self.code)


def load(folder: Path) -> Plugin:
    """The plugin in a folder; raises CallerError naming the file and what is wrong in it."""
    manifest = _manifest(folder / MANIFEST)
    files = list(_files(folder, manifest))
    texts = {name: _script(path) for name, path in zip(manifest.files, files, strict=True)}
    if sum(len(text) for text in texts.values()) > ALL_BYTES:
        raise CallerError(f"{folder / MANIFEST}: files: are over {ALL_BYTES // 1_000_000} MB in all")
    code = _joined(manifest, texts)
    whole = "\0".join([msgspec.json.encode(manifest).decode(), sdk(in_room=True), code])
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    key = hmac.digest(state.key(), f"plugin {manifest.name}@{digest}".encode(), "sha256").hex()[:32]
    return Plugin(
        manifest.name, manifest.version, digest, manifest.matches, manifest.excludes,
        manifest.display_name or manifest.name, manifest.description, manifest.homepage,
        [_page_tool(tool) for tool in manifest.tools], key, _body(manifest, digest, key),
        f'"use strict";\nglobalThis[Symbol.for("dev.afoot.plugin.{digest}")]?.({code});\n', folder,
        [folder / MANIFEST, *files],
    )  # fmt: skip


def sdk(in_room: bool = False) -> str:
    """The SDK as one text. What the background imports as a module is a plain function here."""
    listed = _listed(SDK)
    names = [*_listed(PARTS)["plugin"], *listed["sdk"], *listed["room"]] if in_room else listed["sdk"]
    texts = [(EXTENSION / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts)


def offered() -> str:
    """What the SDK offers to a plugin's files, as an object of JavaScript: `{ defineTool, … }`."""
    return f"{{ {', '.join(_listed(SDK)['offered'])} }}"


def _listed(name: str) -> dict[str, list[str]]:
    return msgspec.json.decode((EXTENSION / name).read_bytes(), type=dict[str, list[str]])


def _manifest(file: Path) -> Manifest:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise CallerError(f"{file}: cannot be read ({error.strerror or error})") from None
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.ValidationError as error:
        raise CallerError(f"{file}: {_told(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallerError(f"{file}: is no JSON ({error})") from None
    for key, what in faults(manifest):
        raise CallerError(f"{file}: {key}: {what}")
    return manifest


def _told(text: str) -> str:
    """What msgspec says, with the key in front: `matches[0]: Expected `str`, got `int``."""
    what, _, where = text.partition(" - at `$")
    key = where.strip("`.") if where else ""
    missing = re.fullmatch(r"Object (missing required|contains unknown) field `(\w+)`", what)
    if missing:
        key = ".".join(filter(None, (key, missing[2])))
        what = "is missing" if missing[1].startswith("missing") else "is no key of plugin.json"
    return f"{key}: {what[:1].lower()}{what[1:]}" if key else f"{what[:1].lower()}{what[1:]}"


def faults(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every key that is wrong, and why."""
    if not NAMES.fullmatch(manifest.name) or len(manifest.name) > 32:
        yield "name", f"{manifest.name!r} is no name: write 1 to 32 lower case letters, digits and single -"
    if manifest.name in RESERVED:
        yield "name", f"{manifest.name!r} is taken by the gateway itself"
    if not manifest.version or len(manifest.version) > 32:
        yield "version", 'write a version, as "1.0.0"'
    for key, listed in (("matches", manifest.matches), ("files", manifest.files)):
        if not listed:
            yield key, "names none"
    yield from _wrong_patterns(manifest)
    yield from _wrong_tools(manifest.tools)
    if manifest.homepage and not re.match(r"https?://[^/]", manifest.homepage):
        yield "homepage", f"{manifest.homepage!r} is no http or https address"
    probe = manifest.readiness
    if isinstance(probe, str) and probe and not WORD.fullmatch(probe):
        yield "readiness", f"{probe!r} is no name of a function"
    if isinstance(probe, Probe) and bool(probe.selector) == bool(probe.value):
        yield "readiness", "name a selector or a value, one of both"


def _wrong_patterns(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for key, listed, check in (
        ("matches", manifest.matches, patterns.narrow), ("excludes", manifest.excludes, patterns.parse)
    ):  # fmt: skip
        for number, pattern in enumerate(listed):
            try:
                check(pattern)
            except ValueError as error:
                yield f"{key}[{number}]", f"{pattern!r} {error}"


def _wrong_tools(tools: list[Declared]) -> Iterator[tuple[str, str]]:
    seen = set[str]()
    for number, tool in enumerate(tools):
        if not TOOLS.fullmatch(tool.name):
            yield f"tools[{number}].name", f"{tool.name!r}: write 1 to 64 letters, digits, _ and -"
        if tool.name in seen:
            yield f"tools[{number}].name", f"{tool.name!r} is there twice"
        if tool.input.get("type", "object") != "object":
            yield f"tools[{number}].input", "must be the schema of an object"
        seen.add(tool.name)


def _files(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """The scripts, none of them outside of the folder."""
    home = folder.resolve()
    for number, name in enumerate(manifest.files):
        where = f"{folder / MANIFEST}: files[{number}]:"
        try:
            path = (folder / name).resolve()
            is_there = path.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # too long, not for files, links in a circle
            raise CallerError(f"{where} {name!r} is no file: {error}") from None
        if Path(name).is_absolute() or not path.is_relative_to(home) or path == home:
            raise CallerError(f"{where} {name!r} is not in the plugin's folder")
        if manifest.files.index(name) != number:
            raise CallerError(f"{where} {name!r} is there twice")
        if not is_there:
            raise CallerError(f"{where} there is no file {name!r}")
        yield path


def _script(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CallerError(f"{path}: cannot be read ({error.strerror or error})") from None
    if len(data) > FILE_BYTES:
        raise CallerError(f"{path}: is over {FILE_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CallerError(f"{path}: is not UTF-8") from None
    if found := MODULE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise CallerError(
            f"{path}: line {line}: has an {found[1]}: files are plain scripts, listed in plugin.json"
        )
    return text


def _joined(manifest: Manifest, texts: Mapping[str, str]) -> str:
    """The files as one function of what the SDK offers; the names of each are seen by all."""
    ready = manifest.readiness if isinstance(manifest.readiness, str) else ""
    probe = f'{{ ready: typeof {ready} === "function" ? {ready} : undefined }}' if ready else "{}"
    return "\n".join([
        f"function ({offered()}) {{",
        *(f"// {name}\n{text}\n;" for name, text in texts.items()),
        f"return {probe};",
        "}",
    ])  # fmt: skip


def _body(manifest: Manifest, digest: str, key: str) -> str:
    probe = manifest.readiness
    facts = {
        "name": manifest.name, "version": manifest.version, "hash": digest, "key": key,
        "matches": manifest.matches, "excludes": manifest.excludes,
        "probe": {"call": probe} if isinstance(probe, str) else probe,
    }  # fmt: skip
    opening = f"openRoom({msgspec.json.encode(facts).decode()}, {offered()});"
    return f'(() => {{\n"use strict";\n{sdk(in_room=True)}\n{opening}\n}})();\n'


def _page_tool(tool: Declared) -> PageTool:
    """The tool as its code would tell of it."""
    return PageTool(
        name=tool.name, title=tool.display_name, description=tool.description,
        input_schema=_raw(tool.input or {"type": "object"}), output_schema=_raw(tool.output),
        annotations=_raw(tool.annotations), icon=tool.icon,
    )  # fmt: skip


def _raw(value: dict[str, Any]) -> Raw:
    return Raw(msgspec.json.encode(value)) if value else NOTHING
