"""Writes the message types of the extension into its background/messages.js; run it after changing them."""

import textwrap
import types
import typing
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, UnsetType

from afoot.serve.api import views
from afoot.serve.extension.side_panel import PanelTab
from afoot.wire import extension

FILE = Path(__file__).parent.parent / "src" / "afoot" / "extension" / "background" / "messages.js"
WIDTH = 110
HEAD = """\
// The frames between a browser and the gateway, written by docs/messages.py from wire/extension.py; no edits.
"""
# Messages for the side panel have types of their own.
SHOWN = {
    "calls": "Array<CallView & { tab?: string }>",
    "questions": "Array<QuestionView>",
    "tabs": "Array<PanelTab>",
}
NAMES = {str: "string", int: "number", float: "number", bool: "boolean", Raw: "unknown", type(None): "null"}


def written() -> str:
    """The text of messages.js."""
    frames = (*extension.FROM_BROWSER.values(), *extension.TO_BROWSER.values())
    known = list[type[Struct]]()
    for kind in (*frames, views.CallView, views.QuestionView, PanelTab):
        _gather(kind, known)
    parts = [HEAD, _constants(), *(_typedef(kind) for kind in known)]
    parts += [_union("FromBrowser", extension.FROM_BROWSER), _union("ToBrowser", extension.TO_BROWSER)]
    return "\n".join([*parts, ""])


def _constants() -> str:
    times = {"BEAT_MS": extension.PING_S, "PROOF_MS": extension.PROOF_S}
    lines = [f'export const SUBPROTOCOL = "{extension.SUBPROTOCOL}";']
    lines += [f"export const {name} = {seconds * 1000:.0f};" for name, seconds in times.items()]
    for name, methods in (("FROM_BROWSER", extension.FROM_BROWSER), ("TO_BROWSER", extension.TO_BROWSER)):
        rows = [f'  "{method}",' for method in methods]
        lines += ["", f"export const {name} = Object.freeze([", *rows, "]);"]
    return "\n".join([*lines, ""])


def _gather(kind: type[Struct], known: list[type[Struct]]) -> None:
    """Collect the types that a type is made of, and then the type itself."""
    if kind in known:
        return
    for field in msgspec.structs.fields(kind):
        for part in _structs(field.type):
            _gather(part, known)
    known.append(kind)


def _structs(kind: object) -> list[type[Struct]]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return [kind]
    return [found for part in typing.get_args(kind) for found in _structs(part)]


def _typedef(kind: type[Struct]) -> str:
    """The typedef of a struct; a field with a default is optional."""
    fields = ", ".join(
        f"{field.encode_name}{'' if field.required else '?'}: {_type(kind, field)}"
        for field in msgspec.structs.fields(kind)
    )
    words = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    body = (
        f"@typedef {{{{ {fields} }}}} {kind.__name__}" if fields else f"@typedef {{object}} {kind.__name__}"
    )
    return _comment(words, body)


def _comment(*texts: str) -> str:
    lines = [
        line
        for text in texts
        for line in textwrap.wrap(text, WIDTH - 3, break_long_words=False, break_on_hyphens=False)
    ]
    return "\n".join(["/**", *(f" * {line}" for line in lines), " */"])


def _type(kind: type[Struct], field: msgspec.structs.FieldInfo) -> str:
    if kind is extension.PanelState and field.name in SHOWN:
        return SHOWN[field.name]
    return _script(field.type)


def _script(kind: typing.Any) -> str:
    """A Python type as a TypeScript type; a value that may be unset is optional."""
    if kind in NAMES:
        return NAMES[kind]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind.__name__
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return " | ".join(dict.fromkeys(_script(one) for one in arguments if one is not UnsetType))
    match typing.get_origin(kind):
        case found if found is list:
            return f"Array<{_script(arguments[0])}>"
        case found if found is dict:
            return f"Record<string, {_script(arguments[1])}>"
        case _:
            raise TypeError(f"no word for {kind}")


def _union(name: str, methods: dict[str, typing.Any]) -> str:
    arms = " | ".join(
        f'{{ method: "{method}", params: {kind.__name__} }}' for method, kind in methods.items()
    )
    return _comment(f"@typedef {{{arms}}} {name}")


if __name__ == "__main__":
    FILE.write_text(written())
