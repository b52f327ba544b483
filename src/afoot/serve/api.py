"""The operator's API over HTTP (routes to come): for now only whether the gateway is well."""

from msgspec import json

from afoot.serve.guard import Guard
from afoot.serve.reply import Receive, Reply, Scope, Send
from afoot.serve.site import Site


def routes(site: Site, guard: Guard):  # type: ignore
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send, site.settings.stuck_s)
        if scope["path"] == "/healthz":
            await reply.json(
                200, json.encode({"status": "degraded" if site.engine.recorder.degraded else "ok"})
            )
        else:
            await reply.json(404, b"{}")

    return app
