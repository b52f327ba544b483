"""The tools that the official conformance suite calls: names, arguments and answers are the suite's."""

import asyncio
import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

import afoot
from afoot import Content, Context, ToolError

# A file of tools beside this one, served with --reload: changing it is how the list of tools changes.
OTHER_TOOLS: Final = "CONFORMANCE_OTHER_TOOLS"

# One red pixel.
PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
# Eight silent samples, mono, 8 kHz.
WAV: Final = (
    b"RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00"
    b"\x01\x00\x08\x00data\x08\x00\x00\x00" + b"\x80" * 8
)
# Slower than the default 20 reports a second, so that none is left out.
STEP_S: Final = 0.06

JSON_SCHEMA_2020_12: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@afoot.tool
async def test_simple_text() -> str:
    """Answers with one text."""
    return "This is a simple text response for testing."


@afoot.tool
async def test_image_content() -> Content:
    """Answers with a picture."""
    return Content.image(PNG, "image/png")


@afoot.tool
async def test_audio_content() -> Content:
    """Answers with a sound."""
    return Content.audio(WAV, "audio/wav")


@afoot.tool
async def test_embedded_resource() -> Content:
    """Answers with a document."""
    text = "This is an embedded resource content."
    return Content.resource("test://embedded-resource", text=text, mime="text/plain")


@afoot.tool
async def test_multiple_content_types() -> list[Content]:
    """Answers with a text, a picture and a document."""
    document = json.dumps({"test": "data", "value": 123})
    return [
        Content.text("Multiple content types test:"),
        Content.image(PNG, "image/png"),
        Content.resource("test://mixed-content-resource", text=document, mime="application/json"),
    ]


@afoot.tool
async def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@afoot.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports 0, 50 and 100 of 100."""
    for done in (0, 50, 100):
        ctx.report(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_S)
    return "reported three times"


@afoot.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Writes three lines to the log."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log(line)
        await asyncio.sleep(STEP_S)
    return "logged three times"


@afoot.tool
async def test_logging_tool(ctx: Context) -> str:
    """Writes one line to the log, for a caller that may not have asked for logs."""
    ctx.log("only for those who asked")
    return "logged once"


@afoot.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the caller's model."""
    return f"LLM response: {said(await ctx.sample(sampling(prompt, 100)))}"


@afoot.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the person for a name and an address."""
    name = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    reply = await ctx.ask(message, form({"username": name, "email": email}, required=("username", "email")))
    return f"User response: action={reply.action}, content={json.dumps(reply.content)}"


@afoot.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default for every kind of field."""
    fields = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    reply = await ctx.ask("Please review and update the form fields with defaults", form(fields))
    return f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}"


@afoot.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every kind of choice."""
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second"), 1)
    ]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    reply = await ctx.ask("Please select options from the enum fields", form(fields))
    return f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}"


@afoot.tool(requires={"sampling": {}})
async def test_missing_capability() -> str:
    """Is refused to callers without a model."""
    return "this caller has a model"


@afoot.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Reports, then asks."""
    ctx.report(0, 1, "about to ask")
    reply = await ctx.ask("Go on?", form({"ok": {"type": "boolean"}}))
    return f"answered: {reply.action}"


@afoot.tool
async def test_trigger_tool_change() -> str:
    """Changes the list of tools, by one tool more or less in the other file."""
    path = os.environ.get(OTHER_TOOLS)
    if path is None:
        return f"nothing to change: {OTHER_TOOLS} names no file"
    write_other_tools(Path(path))
    return "changed"


@afoot.tool(input_schema=JSON_SCHEMA_2020_12, description="Tool with JSON Schema 2020-12 features")
async def json_schema_2020_12_tool(**arguments: Any) -> str:
    """Shows that a schema of the author's own is offered as it is."""
    return f"called with {sorted(arguments)}"


@afoot.tool
async def test_custom_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Takes an argument that HTTP clients repeat in a header."""
    return f"region {region}"


@afoot.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks for a name."""
    reply = await ctx.ask("What is your name?", NAME, key="user_name")
    return f"Hello, {reply.content['name']}!" if reply else "Hello!"


@afoot.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Asks the caller's model for a capital."""
    return said(await ctx.sample(sampling("What is the capital of France?", 100)))


@afoot.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the caller's folders."""
    return f"roots: {json.dumps(await ctx.roots())}"


@afoot.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks for a confirmation; that the call goes on shows that its state came back whole."""
    await ctx.ask("Please confirm", CONFIRM, key="confirm")
    return "state-ok"


@afoot.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks for a confirmation whose state the suite falsifies."""
    await ctx.ask("Please confirm", CONFIRM, key="confirm")
    return "confirmed"


@afoot.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks the person, the model and the client at once."""
    name, greeting, roots = await asyncio.gather(
        ctx.ask("What is your name?", NAME, key="user_name"),
        ctx.sample(sampling("Generate a greeting", 50)),
        ctx.roots(),
    )
    return f"{said(greeting)} {name.action} {len(roots)}"


@afoot.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks twice, one after the other."""
    name = await ctx.ask("Step 1: What is your name?", NAME, key="step1")
    color = await ctx.ask("Step 2: What is your favorite color?", COLOR, key="step2")
    return f"{name.content} {color.content}"


@afoot.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks the person and the model; a caller is only to be asked what it declared."""
    asked = ctx.ask("What is your name?", NAME), ctx.sample(sampling("Generate a greeting", 50))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    return f"{len(answers)} answers"


def form(fields: dict[str, dict[str, Any]], required: Sequence[str] = ()) -> dict[str, Any]:
    """The schema of a form; what is not required may be left out."""
    return {"type": "object", "properties": fields, "required": list(required)}


def sampling(prompt: str, tokens: int) -> dict[str, Any]:
    """What `sampling/createMessage` takes."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": tokens}


def said(message: dict[str, Any]) -> str:
    """The text of a model's message."""
    return str(message["content"]["text"])


def write_other_tools(path: Path) -> None:
    """Write a file of one tool, under another name than before; at once, for it may be read meanwhile."""
    name = "left" if path.exists() and "right" in path.read_text() else "right"
    draft = path.with_suffix(".draft")
    draft.write_text(
        f'import afoot\n\n\n@afoot.tool\ndef {name}() -> str:\n    """Points."""\n    return ""\n'
    )
    draft.replace(path)


NAME: Final = form({"name": {"type": "string"}}, required=("name",))
COLOR: Final = form({"color": {"type": "string"}}, required=("color",))
CONFIRM: Final = form({"ok": {"type": "boolean"}}, required=("ok",))
