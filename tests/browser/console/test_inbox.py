"""The inbox in a real browser: approvals and questions answered by mouse and keyboard, by one or by two."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import answering, click, fill, press, says, steady, write
from tests.browser.console.console_client import Console, start_clock, stop_clock
from tests.browser.page import Page

RUN = "[...document.querySelectorAll('main button')].find((one) => one.innerText === 'Run')"
FOCUS = "document.activeElement?.innerText?.trim() ?? ''"
# A question's card by itself, of a kind that no tool here asks.
ALONE = """import("/console/components/question_card.js").then(({ questionCard }) => {
  const whose = { tool: "t", server: "s", caller: "c", call: "x", id: "x.1", expires: 9e9 };
  const made = questionCard({ ...whose, ...%s }, () => true, () => {});
  const links = [...made.querySelectorAll("a")].map((one) => [one.href, one.rel]);
  return [made.textContent, links, made.querySelectorAll("button").length];
})"""


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway whose tools ask."""
    with answering(tmp_path_factory.mktemp("inbox"), plain_browser) as console:
        yield console


@pytest.fixture
def inbox(asking: Console, plain: Chromium) -> Iterator[Page]:
    """The inbox in a fresh tab; nothing in it was refused by its policy, and nothing stays open."""
    page = asking.open("/inbox")
    yield page
    assert page.evaluate("odd") == []
    for one in asking.api.get("/api/questions").body["questions"]:
        asking.api.post(f"/api/questions/{one['id']}/answer", {"action": "decline"})


def until_steady(page: Page) -> None:
    """Wait until the button counts."""
    steady(page, RUN)


def tabbed(page: Page, text: str) -> list[str]:
    """Press Tab until the focus is there; gives what had it on the way."""
    seen = [page.evaluate(FOCUS)]
    while seen[-1] != text:
        assert len(seen) < 15, seen
        press(page, "Tab")
        seen.append(page.evaluate(FOCUS))
    return seen


def test_an_approval_shows_everything_and_runs(asking: Console, inbox: Page) -> None:
    """V1, A2: whose tool, why, the arguments in full; one click runs it, and the card goes."""
    deep = {"a": {"b": {"c": {f"key {n}": n for n in range(300)}}}}
    call = asking.api.start("burn", path="/very/long/" + "x" * 5000, more=deep)
    says(inbox, "of server local, called by operator")
    says(inbox, "It asks because it may destroy something")
    says(inbox, "It was not approved here before")
    says(inbox, "x" * 5000)
    says(inbox, "key 299")
    until_steady(inbox)
    click(inbox, "Run")
    assert asking.api.ended(call)["approved"] == "user"
    says(inbox, "Nobody waits for you")


def test_what_changed_is_marked_word_by_word(asking: Console, inbox: Page) -> None:
    """A4: what went and what came, and nothing else."""
    for path in ("/tmp/old file", "/tmp/new file"):
        call = asking.api.start("erase", path=path)
        until_steady(inbox)
        if path == "/tmp/old file":
            click(inbox, "Run")
            asking.api.ended(call)
            says(inbox, "Nobody waits for you")
    says(inbox, "The arguments changed since")
    marks = "[...document.querySelectorAll('del, ins')].map((one) => `${one.localName} ${one.innerText}`)"
    assert inbox.evaluate(marks) == ["del old", "ins new"]


def test_a_rejection_tells_the_model_what_to_do_instead(asking: Console, inbox: Page) -> None:
    """A2: with the reviewer's words."""
    call = asking.api.start("erase", path="/a")
    click(inbox, "Reject, and say what to do instead…")
    fill(inbox, "What to do instead", "use the bin")
    click(inbox, "Reject")
    assert "use the bin" in asking.api.ended(call)["failure"]["message"]


def test_always_has_a_scope_and_a_time(asking: Console, inbox: Page) -> None:
    """A2: this tool for an hour, as chosen; the next call is not asked."""
    call = asking.api.start("pack", boxes=[{"width": 1}])
    click(inbox, "Always allow…")
    inbox.until("document.querySelectorAll('.panel select').length === 2")
    inbox.evaluate("document.querySelectorAll('.panel select')[1].value = '3600'")
    click(inbox, "Run, and allow", ".panel")
    assert asking.api.ended(call)["approved"] == "user"
    allowed = asking.api.get("/api/allow").body["allowed"]
    assert [(one["scope"], 3500 < one["until"] - time.time() <= 3600) for one in allowed] == [("tool", True)]
    assert asking.api.ended(asking.api.start("pack", boxes=[]))["approved"] == "allowlist"
    asking.api.send("DELETE", f"/api/allow/{allowed[0]['id']}", None, {})


def test_a_button_under_a_hand_is_not_pressed_as_it_appears(asking: Console, inbox: Page) -> None:
    """A2: run counts only half a second after it came or moved."""
    pressed = f"(() => {{ const run = {RUN}; run?.click(); return Boolean(run); }})()"
    stop_clock(inbox)
    call = asking.api.start("erase", path="/a")
    inbox.until(pressed)
    start_clock(inbox)
    until_steady(inbox)
    stop_clock(inbox)
    inbox.evaluate("document.querySelector('main').style.paddingTop = '200px'")
    assert inbox.evaluate(pressed)
    start_clock(inbox)
    assert asking.api.call(call)["state"] == "queued"
    until_steady(inbox)
    assert inbox.evaluate(pressed)
    assert asking.api.ended(call)["outcome"] == "ok"


def test_a_whole_approval_by_keyboard(asking: Console, inbox: Page) -> None:
    """V1: focus begins at the call's link, never on run; what goes leaves it on the neighbour."""
    first, second = asking.api.start("erase", path="/a"), asking.api.start("erase", path="/b")
    inbox.until("document.querySelectorAll('.cards > li').length === 2")
    inbox.evaluate("document.querySelector('.cards a').focus()")
    assert "Skip" in tabbed(inbox, "Run")
    until_steady(inbox)
    press(inbox, "Enter")
    assert asking.api.ended(first)["outcome"] == "ok"
    inbox.until("document.querySelectorAll('.cards > li').length === 1")
    assert inbox.until(FOCUS) == "erase"
    assert "Run" not in tabbed(inbox, "Skip")
    press(inbox, "Enter")
    assert asking.api.ended(second)["outcome"] == "refused"


def test_a_form_is_checked_kept_over_a_reload_and_sent(asking: Console, inbox: Page) -> None:
    """Q2: errors at their fields, a draft that survives, and the values as they were meant."""
    call = asking.api.start("book")
    says(inbox, "Who comes, and when? <b>bold</b>")
    fill(inbox, "Your name", "A")
    fill(inbox, "age", "17")
    click(inbox, "Send")
    says(inbox, "Needs at least 2 characters")
    says(inbox, "Must be at least 18")
    assert inbox.evaluate("document.querySelectorAll('[aria-invalid=true]').length") == 2
    fill(inbox, "Your name", "Ann")
    inbox.reload()
    fill(inbox, "age", "18")
    assert inbox.evaluate("document.querySelector('input').value") == "Ann"
    click(inbox, "Send")
    content = asking.api.ended(call)["result"]["structured"]["content"]
    assert content == {"name": "Ann", "age": 18, "sure": True, "days": ["tu"]}


def test_what_the_gateway_finds_wrong_stands_at_its_field(asking: Console, inbox: Page) -> None:
    """Q2: also what the page itself let through."""
    asking.api.start("book")
    fill(inbox, "Your name", "Ann")
    fill(inbox, "age", "18")
    fill(inbox, "mail", "two@at@once")
    click(inbox, "Send")
    field = "[...document.querySelectorAll('label')].find((one) => one.innerText === 'mail').control"
    inbox.until(f"{field}.getAttribute('aria-invalid') === 'true'")


def test_the_second_of_two_operators_sees_who_was_first(asking: Console, inbox: Page) -> None:
    """A5: the card stays where it is, and says what was answered by whom."""
    call = asking.api.start("erase", path="/a")
    until_steady(inbox)
    question = asking.api.asked(call)
    inbox.evaluate(f"{RUN}.focus()")
    said = {"content": {"decision": "skip"}}
    asking.api.post(f"/api/questions/{question['id']}/answer", said)
    says(inbox, "Answered: skip, by operator, in the API.")
    assert inbox.evaluate(FOCUS) == "See the call"
    assert inbox.evaluate("document.querySelector('.cards li > div').inert")
    click(inbox, "Clear what is answered")
    says(inbox, "Nobody waits for you")


def test_an_arriving_question_moves_nothing(asking: Console, inbox: Page) -> None:
    """V1: what is shown stays under the pointer; the new one comes last."""
    asking.api.start("erase", path="/a")
    until_steady(inbox)
    place = f"JSON.stringify({RUN}.getBoundingClientRect())"
    before = inbox.evaluate(place)
    asking.api.start("book")
    says(inbox, "Who comes, and when?")
    assert inbox.evaluate(place) == before


def test_a_draft_is_edited_as_json_and_back(asking: Console, inbox: Page) -> None:
    """V1: a JSON text with a live error, and the same fields again."""
    call = asking.api.start("book")
    fill(inbox, "Your name", "Ann")
    fill(inbox, "age", "44")
    click(inbox, "Edit as JSON")
    fill(inbox, "As JSON", '{"name": "Bob",')
    says(inbox, "Is not JSON")
    fill(inbox, "As JSON", '{"name": "Bob", "age": 45}')
    click(inbox, "Edit as a form")
    inbox.until("document.querySelector('.field input')?.value === 'Bob'")
    inbox.evaluate("document.querySelector('.field input').focus()")
    write(inbox, "by")
    press(inbox, "Enter")
    assert asking.api.ended(call)["result"]["structured"]["content"]["name"] == "Bobby"


@pytest.mark.parametrize(
    ("question", "words", "links"),
    [
        ('{kind: "url", message: "Log in", params: "https://login.test/a"}', "I have been there", 2),
        ('{kind: "url", message: "Log in", params: "javascript:alert(1)"}', "javascript:alert(1)", 1),
        ('{kind: "sample", message: "", params: {messages: []}}', "Nobody can answer that here", 1),
        ('{kind: "roots", message: ""}', "which folders it works in", 1),
    ],
)
def test_what_is_no_form_is_shown_honestly(inbox: Page, question: str, words: str, links: int) -> None:
    """Q2, Q3: a page to visit is a link, and what only the caller can answer is said to be so."""
    text, found, buttons = inbox.evaluate(ALONE % question)
    assert words in text and len(found) == links and buttons >= 2
    assert [rel for href, rel in found if "login.test" in href] in ([], ["noopener noreferrer"])


def test_an_answer_to_what_is_asked_no_more_shows_what_is_asked_now(asking: Console, inbox: Page) -> None:
    """A6: the gateway refuses it, and the new state comes below."""
    call = asking.api.start("erase", path="/a")
    question = asking.api.asked(call)
    asked = f"{{...{json.dumps(question)}, digest: '{'0' * 64}'}}"
    skip = "[...made.querySelectorAll('button')].find((one) => one.innerText === 'Skip').click()"
    refused = (
        'import("/console/components/question_card.js").then(({ questionCard }) => new Promise((done) => {'
        f"const made = questionCard({asked}, "
        "(error) => (done([error.status, error.more.question.digest]), true));"
        f"document.body.append(made); {skip}; }}))"
    )
    assert inbox.evaluate(refused) == [409, question["digest"]]
    assert asking.api.question(call) is not None
