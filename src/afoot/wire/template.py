"""URI templates, read backwards: whether a URI can have come from one."""

from collections.abc import Sequence


def matches(template: str, uri: str) -> bool:
    """Whether this URI can be an expansion of the template: RFC 6570, one variable for one segment.

    A set of places is carried through the template, so that no template can make this slow.
    """
    places = {0}
    for literal, expression in _parts(template):
        places = {at + len(literal) for at in places if uri.startswith(literal, at)}
        if not places:
            return False
        if expression:
            places = _spread(places, uri, expression)
    return len(uri) in places


def _parts(template: str) -> Sequence[tuple[str, str]]:
    """Text and the expression behind it, from left to right."""
    found = []
    while template:
        literal, brace, rest = template.partition("{")
        expression, end, template = rest.partition("}")
        if brace and not end:
            return [*found, (literal + brace + rest, "")]
        found.append((literal, expression or ("{}" if brace else "")))
    return found


def _spread(places: set[int], uri: str, expression: str) -> set[int]:
    """The places behind a variable that begins at one of these."""
    can_be_empty = expression[0] in "?&/;.#"
    barred = "" if expression[0] in "+#?&/" or expression.endswith("*") else "/?#"
    found, lives = set(places) if can_be_empty else set(), False
    for at, letter in enumerate(uri):
        lives = (lives or at in places) and letter not in barred
        if lives:
            found.add(at + 1)
    return found
