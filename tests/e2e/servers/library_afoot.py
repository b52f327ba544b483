"""The library of `library_fastmcp.py`, written for afoot."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

import afoot
from afoot import Context, Depends, ToolError


@asynccontextmanager
async def lifespan() -> AsyncIterator[dict[str, Any]]:
    """Open the shelf, once for all callers."""
    yield {"books": {"Emma": 474, "Dracula": 418}, "words": {}}


app = afoot.App(lifespan=lifespan)


def open_books(ctx: Context) -> dict[str, int]:
    """The books, by title: a dependency of tools."""
    books: dict[str, int] = ctx.state["books"]
    return books


class Book(TypedDict):
    """A book on the shelf."""

    title: str
    pages: int


Books = Annotated[dict[str, int], Depends(open_books)]


@afoot.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@afoot.tool
def find(title: str, books: Books) -> Book:
    """Find a book by its title."""
    if title not in books:
        raise ToolError.not_found(f"there is no book {title}")
    return {"title": title, "pages": books[title]}


@afoot.tool
async def scan(pages: int, ctx: Context) -> str:
    """Scan pages."""
    for page in range(pages):
        ctx.report(page + 1, pages, f"page {page + 1}")
    return f"{pages} pages"


@afoot.tool
async def choose(ctx: Context) -> str:
    """Ask the reader what to read."""
    answer = await ctx.ask("Which book?", str)
    return f"reading {answer.content}" if answer else answer.action


@afoot.tool
async def keep(word: str, ctx: Context) -> str:
    """Keep a word for this caller, and say the one before."""
    words: dict[str, str] = ctx.state["words"]
    before = words.get(ctx.caller.id)
    words[ctx.caller.id] = word
    return str(before)


@afoot.resource("library://titles", mime_type="text/plain")
def titles(books: Books) -> str:
    """All titles."""
    return ", ".join(books)


@afoot.resource("library://books/{title}", mime_type="text/plain")
def book(title: str, books: Books) -> str:
    """One book."""
    return f"{title} has {books[title]} pages"


@afoot.prompt
def review(title: str, tone: str = "kind") -> str:
    """Ask for a review."""
    return f"Write a {tone} review of {title}."


@afoot.completion(review, "title")
def complete(typed: str) -> list[str]:
    """Complete titles."""
    return [title for title in ("Emma", "Dracula") if title.startswith(typed)]
