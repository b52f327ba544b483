"""Files as hosts write them today, and what becomes of the servers in them."""

from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    """A host's file: the servers that can be adopted, by the name they get, and why others cannot."""

    file: str
    host: str
    adopted: dict[str, str]
    left: dict[str, str] = field(default_factory=dict)
    scope: str = "user"
    secrets: int = 0

    @property
    def data(self) -> bytes:
        """The file."""
        return (FOLDER / self.file).read_bytes()

    @property
    def text(self) -> str:
        """Its text, line endings as they are."""
        return self.data.decode()


SAMPLES = [
    Sample(
        "claude-code.json", "claude-code", {"github": "github", "filesystem": "filesystem"},
        {"asana": "old SSE", "vault": "headersHelper"}, secrets=2,
    ),
    Sample(
        "claude-code-project.json", "claude-code", {"postgres": "postgres", "sentry": "sentry"},
        scope="project",
    ),
    Sample("claude-desktop.json", "claude-desktop", {"memory": "memory", "time": "time"}, secrets=2),
    Sample(
        "cursor.json", "cursor", {"playwright": "playwright", "linear": "linear", "internal": "internal"},
        {"with-file": "envFile", "old": "old SSE"}, secrets=2,
    ),
    Sample(
        "vscode.json", "vscode", {"Github": "Github", "playwright": "playwright"},
        {"Perplexity": "${input:perplexity-key}", "sandboxed": "sandbox"}, secrets=2,
    ),
    Sample(
        "windsurf.json", "windsurf", {"figma": "figma", "brave search": "brave-search"},
        {"github": "disabledTools"}, secrets=1,
    ),
    Sample(
        "zed.json", "zed", {"notes": "notes", "older": "older", "remote": "remote"},
        {"postgres-context-server": "extension"}, secrets=2,
    ),
    Sample(
        "codex.toml", "codex", {"context7": "context7", "figma": "figma", "my notes": "my-notes"},
        {"careful": "enabled_tools"}, secrets=2,
    ),
    Sample(
        "gemini.json", "gemini", {"git": "git", "github": "github"},
        {"events": "old SSE", "few": "includeTools"},
    ),
]  # fmt: skip
NAMES = [sample.file for sample in SAMPLES]
