"""The keys of the board: what waits is answered in place, calls are cancelled, the table moves."""

from typing import Any

from afoot.cli.asking import Asking, question_of
from afoot.cli.board import Board, Later, Left
from afoot.cli.client import Client, connect, part
from afoot.cli.ending import Stop
from afoot.cli.pump import StopAsking
from afoot.cli.review import case_of
from afoot.observe import terminal

PAGE = 10  # rows


def attend(board: Board, at: str) -> None:
    """Show what happens, and do what the person wants, until it leaves."""
    try:
        while True:
            board.turn()
            while board.pressed:
                _press(board, at, board.pressed.popleft())
    except Left:
        return


def _press(board: Board, at: str, key: str) -> None:
    board.has_help = key == "?" and not board.has_help
    asked = list(board.scene.asking)
    match key:
        case "q":
            raise Left
        case "x":
            _asking(board, at, _cancel)
        case "up" | "page up" | "down" | "page down":
            step = PAGE if key.startswith("page") else 1
            most = max(0, len(board.scene.calls) + len(board.scene.ended) - 1)
            board.skip = min(most, max(0, board.skip + (step if key.endswith("down") else -step)))
        case "enter" if asked:
            _asking(board, at, _answer, asked[0])
        case _ if key.isdecimal() and 0 < int(key) <= len(asked):
            _asking(board, at, _answer, asked[int(key) - 1])
        case _ if key == "enter" or key.isdecimal():
            board.say("no question of this number waits for you" if asked else "nothing waits for you")
        case _:
            pass


def _asking(board: Board, at: str, do: Any, *words: str) -> None:
    """Something that asks the person; what goes wrong is said, and ends nothing."""
    try:
        do(board, connect(at), *words)
    except Later:
        pass
    except StopAsking:
        board.say("somebody else has settled it")
    except Stop as stop:
        board.say(stop.message.partition("\n")[0])


def _cancel(board: Board, client: Client) -> None:
    with board.asking(lambda: True):
        board.say("Cancel a call (Esc: none).")
        name = (board.ask("the end of its id: ") or "").strip()
        if not name:
            return
        reason = (board.ask("why (the tool is told; Enter: no reason): ") or "").strip()
    told = client.post(f"/api/calls/{part(name)}/cancel", {"reason": reason} if reason else {})
    board.say(f"{terminal.name(told['tool'])} {terminal.short(told['id'])}: {told['state']}")


def _answer(board: Board, client: Client, name: str) -> None:
    found: list[dict[str, Any]] = client.get("/api/questions")["questions"]
    asked = next((one for one in found if one["id"] == name), None)
    if asked is None:
        raise StopAsking
    taking = _Taking(client, asked, board)
    with board.asking(lambda: name in board.scene.asking, is_approval=asked["kind"] == "approval"):
        who = f"{terminal.short(asked['call'])} {terminal.clean(asked['tool'])}"
        board.say(f"{who} asks: {terminal.clean(asked['message'])}")
        for line in _changed(asked):
            board.say(line)
        board.say("(Esc leaves it to others, Ctrl-D declines)")
        Asking(question_of(asked), taking, board, board.ask, case_of(asked)).run()
    board.say(f"{who}: {taking.told}")


class _Taking:
    """Where an answer goes: to the question as it was displayed, and to no other."""

    def __init__(self, client: Client, asked: dict[str, Any], board: Board) -> None:
        self._client, self._asked = client, asked
        self._board = board
        self.told = "not answered"

    def answer(self, question: str, action: str, content: object) -> None:
        body: dict[str, Any] = {"action": action, "digest": self._asked.get("digest", "")}
        if content is not None:
            body["content"] = content
        try:
            self._client.post(f"/api/questions/{part(question)}/answer", body)
        except Stop as stop:
            self.told = stop.message
            raise
        self._board.scene.asking.pop(question, None)  # the stream tells so, a moment later
        decision = content.get("decision") if isinstance(content, dict) else None
        self.told = str(decision or {"accept": "answered"}.get(action, f"{action}d"))


def _changed(asked: dict[str, Any]) -> list[str]:
    """What is other than when it was last approved."""
    changed = asked.get("changed") or {}
    parts = [word for word in ("definition", "arguments") if changed.get(word)]
    if not parts:
        return []
    return [f"  its {' and '.join(parts)} changed since it was approved at {terminal.at(changed['at'])}"]
