"""`app_page` is the page of our MCP App in one piece: modules and styles of the console, put together once.

Hosts show a page without an origin from which it could load its parts, so they stand in it. Nothing is
compiled: each module becomes a function that returns what it exports, in the order in which they need each
other. The page's own policy lets nothing else run, and nothing leave.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "web"
ENTRY = "app.js"
STYLES = ("styles/tokens.css", "styles/base.css", "styles/narrow.css")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", re.MULTILINE)
_COMMENTS = re.compile(r"/\*.*?\*/|^\s*//.*?$", re.MULTILINE | re.DOTALL)
# Statements that the two patterns above do not take apart.
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>afoot</title>
<style>{style}</style>
</head>
<body>
<script type="module">{script}</script>
</body>
</html>
"""
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@cache
def app_page() -> str:
    """The whole page; it is the same for everybody."""
    style = "".join(_without_comments((FOLDER / name).read_text()) for name in STYLES)
    script = joined_modules(FOLDER, ENTRY)
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    return _PAGE.format(policy=policy, style=style, script=script)


def joined_modules(folder: Path, entry: str) -> str:
    """A module and all that it imports as one script, which says the same; raises ValueError."""
    order = list[Path]()
    _visit((folder / entry).resolve(), order, ())
    names = {file: f"module{number}" for number, file in enumerate(order)}
    script = "\n".join(_module(file, names) for file in order)
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the script would end its own element")
    return f"\n{script}\n"


def _visit(file: Path, order: list[Path], above: tuple[Path, ...]) -> None:
    """Put a module behind those that it imports."""
    if file in above:
        raise ValueError(f"{file.name} imports itself, by way of {above[-1].name}")
    if file in order:
        return
    for _, name in _IMPORT.findall(file.read_text()):
        _visit((file.parent / name).resolve(), order, (*above, file))
    order.append(file)


def _module(file: Path, names: dict[Path, str]) -> str:
    """A module as a function that returns its exports; the last one has none, and stays as it is."""
    source = _IMPORT.sub(lambda found: _binding(found, file, names), _without_comments(file.read_text()))
    exported = [found.group(1) for found in _EXPORT.finditer(source)]
    source = _EXPORT.sub("", source)
    if other := _OTHER.search(source):
        raise ValueError(f"{file.name}: {other.group()!r} cannot be put into one script")
    if not exported:
        return source
    return f"const {names[file]} = (() => {{\n{source}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _without_comments(text: str) -> str:
    """The text without comments, which are half of it, and without empty lines."""
    return "\n".join(line for line in _COMMENTS.sub("", text).splitlines() if line.strip())


def _binding(found: re.Match[str], file: Path, names: dict[Path, str]) -> str:
    """The statement in place of an import."""
    bound = re.sub(r"(\w+) as (\w+)", r"\1: \2", " ".join(found.group(1).split()))
    return f"const {{ {bound.rstrip(',')} }} = {names[(file.parent / found.group(2)).resolve()]};"


def _digest(text: str) -> str:
    """The source expression by which a policy allows exactly this text."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
