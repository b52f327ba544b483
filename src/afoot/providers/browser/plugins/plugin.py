"""`load_plugin` reads a `Plugin`: a folder with plugin.json and plain scripts, joined with the SDK (B2)."""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.config import state_folder
from afoot.core.facts import NOTHING
from afoot.errors import CallerError
from afoot.providers.browser.plugins.match_patterns import parse_narrow_pattern, parse_pattern
from afoot.wire.browser_data import PageTool, PluginBundle

MANIFEST = "plugin.json"
FILE_BYTES = 1_000_000
ALL_BYTES = 5_000_000
PLUGIN_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
JS_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
MODULE_SYNTAX = re.compile(r"^(import|export)\b\s*[\w*{\"']", re.MULTILINE)  # not `import(…)` or a key
RESERVED_NAMES = ("afoot",)  # names of the gateway's own tools begin with it
EXTENSION = Path(__file__).parents[3] / "extension"
CONTENT_FILES = "content/files.json"  # lists the scripts of a page context
# Lists the files of the SDK in order, the files that only a page context needs, and the names for plugins.
SDK_FILES = "sdk/files.json"


class Probe(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The condition for tools to run: an element that exists, or a value of the page that is truthy."""

    selector: str = ""
    value: str = ""


class ManifestTool(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A tool as plugin.json may list it, with the keys of `defineTool`."""

    name: str
    display_name: str = ""
    description: str = ""
    icon: str = ""
    input: dict[str, Any] = {}
    output: dict[str, Any] = {}
    annotations: dict[str, Any] = {}


class PluginManifest(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The contents of plugin.json."""

    name: str
    version: str
    matches: list[str]
    files: list[str]
    display_name: str = ""
    description: str = ""
    excludes: list[str] = []
    homepage: str = ""
    readiness: str | Probe = ""
    tools: list[ManifestTool] = []


class Plugin(Struct, frozen=True):
    """A plugin that can run. `hash` covers all its code; `tools` are known even if no tab is open."""

    name: str
    version: str
    hash: str
    matches: list[str]
    excludes: list[str]
    title: str
    description: str
    homepage: str
    tools: list[PageTool]
    key: str  # secret by which a carrier knows its page contexts; the same for the same code
    body: str  # the SDK, which opens the page context
    code: str  # the plugin's own files, which the SDK runs
    folder: Path
    files: list[Path]

    @property
    def source(self) -> str:
        """The name of this code in page contexts and approvals: plugin:NAME@HASH."""
        return f"plugin:{self.name}@{self.hash}"

    @property
    def start(self) -> str:
        """The page to open if no tab has one of its pages."""
        return self.homepage or self.matches[0]

    def bundle(self) -> PluginBundle:
        """The plugin as it is sent to a browser."""
        return PluginBundle(self.name, self.hash, self.key, self.matches, self.excludes, self.body, self.code)


def load_plugin(folder: Path) -> Plugin:
    """Read the plugin in a folder; raises CallerError naming the file and what is wrong in it."""
    manifest = _read_manifest(folder / MANIFEST)
    files = list(_files(folder, manifest))
    texts = {name: _read_script(path) for name, path in zip(manifest.files, files, strict=True)}
    if sum(len(text) for text in texts.values()) > ALL_BYTES:
        raise CallerError(f"{folder / MANIFEST}: files: are over {ALL_BYTES // 1_000_000} MB in all")
    code = _join_scripts(manifest, texts)
    whole = "\0".join([msgspec.json.encode(manifest).decode(), sdk_source(in_context=True), code])
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    sealed = hmac.digest(state_folder.sealing_key(), f"plugin {manifest.name}@{digest}".encode(), "sha256")
    key = sealed.hex()[:32]
    return Plugin(
        name=manifest.name,
        version=manifest.version,
        hash=digest,
        matches=manifest.matches,
        excludes=manifest.excludes,
        title=manifest.display_name or manifest.name,
        description=manifest.description,
        homepage=manifest.homepage,
        tools=[_page_tool(tool) for tool in manifest.tools],
        key=key,
        body=_sdk_bundle(manifest, digest, key),
        code=f'"use strict";\nglobalThis[Symbol.for("dev.afoot.plugin.{digest}")]?.({code});\n',
        folder=folder,
        files=[folder / MANIFEST, *files],
    )


def sdk_source(in_context: bool = False) -> str:
    """The SDK as one plain script, without `export`; `in_context` adds the scripts of a page context."""
    listed = _read_list(SDK_FILES)
    names = (
        [*_read_list(CONTENT_FILES)["plugin"], *listed["sdk"], *listed["context"]]
        if in_context
        else listed["sdk"]
    )
    texts = [(EXTENSION / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts)


def sdk_exports() -> str:
    """The names that the SDK gives to a plugin's files, as a JavaScript pattern: `{ defineTool, … }`."""
    return f"{{ {', '.join(_read_list(SDK_FILES)['offered'])} }}"


def _read_list(name: str) -> dict[str, list[str]]:
    return msgspec.json.decode((EXTENSION / name).read_bytes(), type=dict[str, list[str]])


def _read_manifest(file: Path) -> PluginManifest:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise CallerError(f"{file}: cannot be read ({error.strerror or error})") from None
    try:
        manifest = msgspec.json.decode(text, type=PluginManifest)
    except msgspec.ValidationError as error:
        raise CallerError(f"{file}: {_decode_error(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallerError(f"{file}: is no JSON ({error})") from None
    for key, what in faults(manifest):
        raise CallerError(f"{file}: {key}: {what}")
    return manifest


def _decode_error(text: str) -> str:
    """The text of msgspec's error, with the key in front: `matches[0]: expected `str`, got `int``."""
    what, _, where = text.partition(" - at `$")
    key = where.strip("`.") if where else ""
    missing = re.fullmatch(r"Object (missing required|contains unknown) field `(\w+)`", what)
    if missing:
        key = ".".join(filter(None, (key, missing[2])))
        what = "is missing" if missing[1].startswith("missing") else "is no key of plugin.json"
    return f"{key}: {what[:1].lower()}{what[1:]}" if key else f"{what[:1].lower()}{what[1:]}"


def faults(manifest: PluginManifest) -> Iterator[tuple[str, str]]:
    """Yield every wrong key of a manifest, and what is wrong with it."""
    if not PLUGIN_NAME.fullmatch(manifest.name) or len(manifest.name) > 32:
        yield "name", f"{manifest.name!r} is no name: write 1 to 32 lower case letters, digits and single -"
    if manifest.name in RESERVED_NAMES:
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
    if isinstance(probe, str) and probe and not JS_IDENTIFIER.fullmatch(probe):
        yield "readiness", f"{probe!r} is no name of a function"
    if isinstance(probe, Probe) and bool(probe.selector) == bool(probe.value):
        yield "readiness", "name a selector or a value, one of both"


def _wrong_patterns(manifest: PluginManifest) -> Iterator[tuple[str, str]]:
    for key, listed, check in (
        ("matches", manifest.matches, parse_narrow_pattern), ("excludes", manifest.excludes, parse_pattern)
    ):  # fmt: skip
        for number, pattern in enumerate(listed):
            try:
                check(pattern)
            except ValueError as error:
                yield f"{key}[{number}]", f"{pattern!r} {error}"


def _wrong_tools(tools: list[ManifestTool]) -> Iterator[tuple[str, str]]:
    seen = set[str]()
    for number, tool in enumerate(tools):
        if not TOOL_NAME.fullmatch(tool.name):
            yield f"tools[{number}].name", f"{tool.name!r}: write 1 to 64 letters, digits, _ and -"
        if tool.name in seen:
            yield f"tools[{number}].name", f"{tool.name!r} is there twice"
        if tool.input.get("type", "object") != "object":
            yield f"tools[{number}].input", "must be the schema of an object"
        seen.add(tool.name)


def _files(folder: Path, manifest: PluginManifest) -> Iterator[Path]:
    """Yield the paths of the scripts; raises CallerError for one outside of the folder."""
    home = folder.resolve()
    for number, name in enumerate(manifest.files):
        where = f"{folder / MANIFEST}: files[{number}]:"
        try:
            path = (folder / name).resolve()
            is_there = path.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # too long, a bad character, a circle of links
            raise CallerError(f"{where} {name!r} is no file: {error}") from None
        if Path(name).is_absolute() or not path.is_relative_to(home) or path == home:
            raise CallerError(f"{where} {name!r} is not in the plugin's folder")
        if manifest.files.index(name) != number:
            raise CallerError(f"{where} {name!r} is there twice")
        if not is_there:
            raise CallerError(f"{where} there is no file {name!r}")
        yield path


def _read_script(path: Path) -> str:
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
    if found := MODULE_SYNTAX.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise CallerError(
            f"{path}: line {line}: has an {found[1]}: files are plain scripts, listed in plugin.json"
        )
    return text


def _join_scripts(manifest: PluginManifest, texts: Mapping[str, str]) -> str:
    """The files as one function that takes the SDK's names; all files share one scope."""
    ready = manifest.readiness if isinstance(manifest.readiness, str) else ""
    probe = f'{{ ready: typeof {ready} === "function" ? {ready} : undefined }}' if ready else "{}"
    return "\n".join([
        f"function ({sdk_exports()}) {{",
        *(f"// {name}\n{text}\n;" for name, text in texts.items()),
        f"return {probe};",
        "}",
    ])  # fmt: skip


def _sdk_bundle(manifest: PluginManifest, digest: str, key: str) -> str:
    probe = manifest.readiness
    facts = {
        "name": manifest.name, "version": manifest.version, "hash": digest, "key": key,
        "matches": manifest.matches, "excludes": manifest.excludes,
        "probe": {"call": probe} if isinstance(probe, str) else probe,
    }  # fmt: skip
    opening = f"openPluginContext({msgspec.json.encode(facts).decode()}, {sdk_exports()});"
    return f'(() => {{\n"use strict";\n{sdk_source(in_context=True)}\n{opening}\n}})();\n'


def _page_tool(tool: ManifestTool) -> PageTool:
    """The tool as the plugin's code would list it."""
    return PageTool(
        name=tool.name, title=tool.display_name, description=tool.description,
        input_schema=_raw(tool.input or {"type": "object"}), output_schema=_raw(tool.output),
        annotations=_raw(tool.annotations), icon=tool.icon,
    )  # fmt: skip


def _raw(value: dict[str, Any]) -> Raw:
    return Raw(msgspec.json.encode(value)) if value else NOTHING
