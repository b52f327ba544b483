"""The settings, as far as the engine goes by them."""

from operator import attrgetter

from msgspec.structs import replace

from afoot.config import Settings
from afoot.core.redact import Redactor
from afoot.engine.engine import Engine
from afoot.engine.quota import Quota
from afoot.engine.tapes import Tapes
from afoot.engine.terms import Terms
from afoot.tables import QuotaSettings

# What is read once, when a gateway starts.
FIXED = (
    "http", "store", "targets", "durable", "server_concurrency", "mcp_token", "allow_origins", "allow_hosts",
    "access", "hooks", "otel", "linger_s", "browser.cdp", "isolation.nice", "isolation.spare",
)  # fmt: skip


def held(settings: Settings, before: Settings) -> tuple[Settings, list[str]]:
    """Settings for a gateway that runs: what is fixed stays as it was, and is named if it was to change."""
    changed = [name for name in FIXED if attrgetter(name)(settings) != attrgetter(name)(before)]
    for name in changed:
        table, _, key = name.rpartition(".")
        kept = {key: attrgetter(name)(before)}
        if table:
            kept = {table: replace(getattr(settings, table), **kept)}
        settings = replace(settings, **kept)
    return settings, changed


def apply(engine: Engine, settings: Settings) -> None:
    """Have the engine go by these settings; what runs goes on as it is."""
    engine.catalog.terms = Terms(
        settings.tools, settings.servers, settings.approval, settings.policy,
        settings.max_idle_s, settings.max_ceiling_s, _redactor(engine, settings),
    )  # fmt: skip
    _limit(engine, settings.quota)
    engine.tapes = (engine.tapes or Tapes(engine)) if settings.record_wire else None
    engine.write_ahead = settings.durable == "full"
    engine.require_history = settings.history == "required"
    engine.max_result_bytes = settings.max_result_bytes
    engine.max_data_bytes = settings.max_data_bytes
    engine.max_questions = settings.max_questions
    engine.max_attempts = settings.max_attempts
    engine.policy.ask_by = settings.ask_by
    engine.policy.waits = settings.unanswerable == "wait"


def _redactor(engine: Engine, settings: Settings) -> Redactor:
    """The rules for secrets; which ones there are is not forgotten when the rules change."""
    redactor = Redactor(settings.redact)
    redactor.recall(engine.catalog.terms.redactor.known)
    redactor.know({**settings.otel.headers, "mcp_token": settings.mcp_token})
    return redactor


def _limit(engine: Engine, tables: dict[str, QuotaSettings]) -> None:
    """Put these quotas in force; what was used before still counts."""
    before = engine.quota
    if before is not None and before.tables == tables:
        return
    engine.quota = Quota(tables, engine) if tables else None
    if before is not None:
        before.close()
        if engine.quota is not None:
            engine.quota.used = before.used
    engine.slots.per_caller = None if engine.quota is None else engine.quota.concurrency
    while engine.closing is None and engine.slots.next() is not None:
        pass  # who waited for what is no limit any more goes on
