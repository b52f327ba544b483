"""Everything besides tools that the official suite wants, as functions of the gateway's own."""

import json
import os
from pathlib import Path
from typing import Final

import afoot
from afoot import Content, Context
from tests.conformance.fixture import PNG, form

# A file of prompts beside this one, served with --reload: changing it is how the list of prompts changes.
OTHER_PROMPTS: Final = "CONFORMANCE_OTHER_PROMPTS"
WATCHED: Final = "test://watched-resource"
CONTEXT: Final = form({"context": {"type": "string"}}, required=("context",))


@afoot.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@afoot.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return PNG


@afoot.resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> dict[str, object]:
    """Whatever the URI says."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@afoot.resource(WATCHED, mime_type="text/plain")
def watched() -> str:
    """Told of by `test_trigger_resource_change`."""
    return "Watched."


@afoot.prompt
def test_simple_prompt() -> str:
    """One message."""
    return "This is a simple prompt for testing."


@afoot.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@afoot.completion(test_prompt_with_arguments, "arg1")
def words(typed: str) -> list[str]:
    """A few words that begin so."""
    return [word for word in ("paris", "park", "party", "test", "testing") if word.startswith(typed)]


@afoot.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Content | str]:
    """A document, and a request."""
    document = Content.resource(resourceUri, text="Embedded resource content for testing.", mime="text/plain")
    return [document, "Please process the embedded resource above."]


@afoot.prompt
def test_prompt_with_image() -> list[Content | str]:
    """A picture, and a request."""
    return [Content.image(PNG, "image/png"), "Please analyze the image above."]


@afoot.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Asks for its context before it answers."""
    reply = await ctx.ask("What context?", CONTEXT, key="user_context")
    return f"Prompt with context: {json.dumps(reply.content)}"


@afoot.tool
async def test_trigger_prompt_change() -> str:
    """Changes the list of prompts, by another name of the one in the other file."""
    path = os.environ.get(OTHER_PROMPTS)
    if path is None:
        return f"nothing to change: {OTHER_PROMPTS} names no file"
    write_other_prompts(Path(path))
    return "changed"


@afoot.tool
async def test_trigger_resource_change(ctx: Context) -> str:
    """Tells that the watched resource is another one now."""
    ctx.resource_changed(WATCHED)
    return "changed"


def write_other_prompts(path: Path) -> None:
    """Write a file of one prompt, under another name than before; at once, for it may be read meanwhile."""
    name = "left_prompt" if path.exists() and "right_prompt" in path.read_text() else "right_prompt"
    draft = path.with_suffix(".draft")
    draft.write_text(
        f'import afoot\n\n\n@afoot.prompt\ndef {name}() -> str:\n    """Points."""\n    return ""\n'
    )
    draft.replace(path)
