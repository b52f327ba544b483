"""The inbox in a real browser: approvals and questions answered by mouse and keyboard, by one or by two."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import answering, click, fill, press, says, steady, tap, write
from tests.browser.console.console_client import Console, start_clock, stop_clock
from tests.browser.page import Page

RUN = "document.querySelector('.card[data-selected] [data-act=run]')"
CARDS = "document.querySelectorAll('.inbox .card').length"
SELECTED = "document.querySelector('.card[data-selected] [data-question]')?.dataset.question"
FIELD = "[...document.querySelectorAll('main label')].find((one) => one.innerText.startsWith({!r})).control"
FOCUS = "document.activeElement?.innerText?.trim() ?? ''"
# A question by itself, of a kind that no tool here asks.
ALONE = """import("/console/components/question/question.js").then(({ wholeQuestion }) => {
  const whose = { tool: "t", server: "s", caller: "c", call: "x", id: "x.1", expires: 9e9 };
  const made = wholeQuestion({ ...whose, ...%s });
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


def test_an_approval_shows_everything_and_runs(asking: Console, inbox: Page) -> None:
    """V1, A2: whose tool, why, the arguments in full; one click runs it, and the card goes."""
    deep = {"a": {"b": {"c": {f"key {n}": n for n in range(300)}}}}
    call = asking.api.start("burn", path="/very/long/" + "x" * 5000, more=deep)
    says(inbox, "burn of local, asked by operator")
    says(inbox, "it may destroy something")
    says(inbox, "It was not approved here before")
    says(inbox, "x" * 5000)
    says(inbox, "key 299")
    until_steady(inbox)
    click(inbox, "Run burn")
    assert asking.api.ended(call)["approved"] == "user"
    says(inbox, "Nobody waits for you")


def test_what_changed_is_marked_word_by_word(asking: Console, inbox: Page) -> None:
    """A4: beside the last approved run: what came and what went, and nothing else."""
    for path in ("/tmp/old file", "/tmp/new file"):
        call = asking.api.start("erase", path=path, force=True)
        until_steady(inbox)
        if path == "/tmp/old file":
            click(inbox, "Run erase")
            asking.api.ended(call)
            says(inbox, "Nobody waits for you")
    says(inbox, "Last approved run")
    marks = "[...document.querySelectorAll('del, ins')].map((one) => `${one.localName} ${one.innerText}`)"
    assert inbox.evaluate(marks) == ["ins new", "del old"]
    changed = "[...document.querySelectorAll('.arguments tr[data-changed] th')].map((one) => one.innerText)"
    assert [name.split()[-1] for name in inbox.evaluate(changed)] == ["path"]
    inbox.until("document.querySelector('.given-answers')?.innerText.includes('/tmp/old file')")


def test_a_rejection_tells_the_model_what_to_do_instead(asking: Console, inbox: Page) -> None:
    """A2: with the reviewer's words."""
    call = asking.api.start("erase", path="/a")
    until_steady(inbox)
    click(inbox, "Reject…")
    inbox.until("document.activeElement.name === 'instead'")
    write(inbox, "use the bin")
    click(inbox, "Reject", ".beside")
    assert "use the bin" in asking.api.ended(call)["failure"]["message"]
    again = asking.api.start("erase", path="/b")
    click(inbox, "use the bin", ".beside")
    press(inbox, "Enter")
    assert "use the bin" in asking.api.ended(again)["failure"]["message"]


def test_always_has_a_scope_and_a_time(asking: Console, inbox: Page) -> None:
    """A2: this tool for an hour, as chosen; the next call is not asked."""
    call = asking.api.start("pack", boxes=[{"width": 1}])
    click(inbox, "Always allow…")
    inbox.until("document.querySelectorAll('.floating select').length === 2")
    inbox.evaluate("document.querySelectorAll('.floating select')[1].value = '3600'")
    click(inbox, "Run, and allow", ".floating")
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
    """V1: j and k select, y runs, n goes to the words; only the selected question shows and gets its keys."""
    first, second = asking.api.start("erase", path="/a"), asking.api.start("erase", path="/b")
    inbox.until(f"{CARDS} === 2 && {SELECTED}.startsWith({first!r})")
    hints = "[...document.querySelectorAll('.card kbd')].filter((one) => one.checkVisibility()).length"
    assert inbox.evaluate(hints) == 2
    tap(inbox, "j")
    inbox.until(f"{SELECTED}.startsWith({second!r})")
    until_steady(inbox)
    tap(inbox, "y")
    assert asking.api.ended(second)["outcome"] == "ok"
    inbox.until(f"{CARDS} === 1 && {SELECTED}.startsWith({first!r})")
    assert asking.api.call(first)["state"] == "queued"
    until_steady(inbox)
    tap(inbox, "n")
    inbox.until("document.activeElement.name === 'instead'")
    write(inbox, "yes, no, y n")
    press(inbox, "Enter")
    assert "yes, no, y n" in asking.api.ended(first)["failure"]["message"]
    says(inbox, "Nobody waits for you")


def test_the_next_question_is_not_answered_by_the_same_key(asking: Console, inbox: Page) -> None:
    """V1, A2: y answers the selected question; the one that takes its place has just appeared."""
    first, second = asking.api.start("erase", path="/a"), asking.api.start("erase", path="/b")
    inbox.until(f"{CARDS} === 2")
    until_steady(inbox)
    stop_clock(inbox)
    tap(inbox, "y")
    assert asking.api.ended(first)["outcome"] == "ok"
    inbox.until(f"{CARDS} === 1 && {SELECTED}.startsWith({second!r})")
    tap(inbox, "y")
    assert asking.api.call(second)["state"] == "queued"
    start_clock(inbox)


def test_a_form_is_checked_kept_over_a_reload_and_sent(asking: Console, inbox: Page) -> None:
    """Q2, V1: all errors are named, the first field has the focus; a draft survives a reload."""
    call = asking.api.start("book")
    says(inbox, "Who comes, and when? <b>bold</b>")
    tap(inbox, "e")
    inbox.until(f"document.activeElement === {FIELD.format('Your name')}")
    fill(inbox, "age", "17")
    click(inbox, "Send")
    says(inbox, "2 fields need a look: Your name, age")
    says(inbox, "Nothing entered yet")
    says(inbox, "Must be at least 18")
    assert inbox.evaluate("document.querySelectorAll('[aria-invalid=true]').length") == 2
    assert inbox.evaluate(f"document.activeElement === {FIELD.format('Your name')}")
    click(inbox, "age", ".form-errors")
    assert inbox.evaluate(f"document.activeElement === {FIELD.format('age')}")
    fill(inbox, "Your name", "Ann")
    inbox.reload()
    fill(inbox, "age", "18")
    assert inbox.evaluate("document.querySelector('main input').value") == "Ann"
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
    field = FIELD.format("mail")
    inbox.until(f"{field}.getAttribute('aria-invalid') === 'true' && document.activeElement === {field}")


def test_the_second_of_two_operators_sees_who_was_first(asking: Console, inbox: Page) -> None:
    """A5: the card stays where it is, and says what was answered by whom."""
    call = asking.api.start("erase", path="/a")
    until_steady(inbox)
    question = asking.api.asked(call)
    inbox.evaluate(f"{RUN}.focus()")
    said = {"content": {"decision": "skip"}}
    asking.api.post(f"/api/questions/{question['id']}/answer", said)
    says(inbox, "Skipped by operator, in the API.")
    assert inbox.evaluate(FOCUS) == "See the call"
    assert inbox.evaluate("document.querySelector('.card .whole').inert")
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
        'import("/console/components/question/question.js")'
        ".then(({ wholeQuestion }) => new Promise((done) => {"
        "const onClosed = (error) => done([error.status, error.more.question.digest]);"
        f"const made = wholeQuestion({asked}, {{ onClosed }});"
        f"document.body.append(made); {skip}; }}))"
    )
    assert inbox.evaluate(refused) == [409, question["digest"]]
    assert asking.api.question(call) is not None
