"""A library, as somebody wrote it for FastMCP: five tools, two resources and a prompt; nothing of afoot."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.exceptions import ToolError
from fastmcp.server.completions import CompletionReference


@asynccontextmanager
async def lifespan(server: FastMCP) -> AsyncIterator[dict[str, Any]]:
    """Open the shelf, once for all callers."""
    yield {"books": {"Emma": 474, "Dracula": 418}}


mcp: FastMCP = FastMCP("library", lifespan=lifespan)


def open_books(ctx: Context = CurrentContext()) -> dict[str, int]:  # noqa: B008
    """The books, by title: a dependency of tools."""
    books: dict[str, int] = ctx.lifespan_context["books"]
    return books


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def find(title: str, books: dict[str, int] = Depends(open_books)) -> dict[str, Any]:  # noqa: B008
    """Find a book by its title."""
    if title not in books:
        raise ToolError(f"there is no book {title}")
    return {"title": title, "pages": books[title]}


@mcp.tool
async def scan(pages: int, ctx: Context) -> str:
    """Scan pages."""
    for page in range(pages):
        await ctx.report_progress(page + 1, pages, f"page {page + 1}")
    return f"{pages} pages"


@mcp.tool
async def choose(ctx: Context) -> str:
    """Ask the reader what to read."""
    answer = await ctx.elicit("Which book?", str)
    return f"reading {answer.data}" if answer.action == "accept" else answer.action


@mcp.tool
async def keep(word: str, ctx: Context) -> str:
    """Keep a word for this session, and say the one before."""
    before = await ctx.get_state("word")
    await ctx.set_state("word", word)
    return str(before)


@mcp.resource("library://titles", mime_type="text/plain")
def titles(ctx: Context) -> str:
    """All titles."""
    books: dict[str, int] = ctx.lifespan_context["books"]
    return ", ".join(books)


@mcp.resource("library://books/{title}", mime_type="text/plain")
def book(title: str, ctx: Context) -> str:
    """One book."""
    return f"{title} has {ctx.lifespan_context['books'][title]} pages"


@mcp.prompt
def review(title: str, tone: str = "kind") -> str:
    """Ask for a review."""
    return f"Write a {tone} review of {title}."


@mcp.completion
def complete(
    ref: CompletionReference, argument: types.CompletionArgument, context: types.CompletionContext | None
) -> list[str]:
    """Complete titles."""
    return [title for title in ("Emma", "Dracula") if title.startswith(argument.value)]
