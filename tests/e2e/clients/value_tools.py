"""Tools that return values of every kind."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

import afoot
from afoot import Content, Partial


@dataclass
class Place:
    city: str
    metres: float


class Person(BaseModel):
    name: str
    age: int | None = None


@afoot.tool
def text() -> str:
    return "plain text"


@afoot.tool
def number() -> int:
    return 7


@afoot.tool
def names() -> list[str]:
    return ["a", "b"]


@afoot.tool
def place() -> Place:
    return Place("Bern", 540.0)


@afoot.tool
async def person() -> Person:
    return Person(name="Ada")


@afoot.tool
def nothing() -> None:
    return None


@afoot.tool
def image() -> Content:
    return Content.image(b"\x89PNG", "image/png")


@afoot.tool
def audio() -> Content:
    return Content.audio(b"RIFF", "audio/wav")


@afoot.tool
def file() -> list[Content | str]:
    return ["this file:", Content.file(Path(__file__), "text/x-python")]


@afoot.tool
async def pages() -> AsyncIterator[Partial | str]:
    yield Partial("one ")
    yield Partial("two")
