"""The browser that tests and `afoot browser --try` use: started, steered, and gone with all its children."""

import os

import pytest

from tests.browser.chromium import Chromium, running, until
from tests.browser.site import Site


def test_a_page_of_the_site_runs_its_scripts(browser: Chromium, site: Site) -> None:
    """B5: what follows stands on this."""
    page = browser.open(site.url("contract.html"))
    assert page.evaluate("document.title") == "Contract"
    assert page.evaluate("Promise.resolve(isSecureContext)") is True


def test_only_the_browser_with_the_flag_has_webmcp(native: Chromium, plain: Chromium, site: Site) -> None:
    """B3: both kinds are tested."""
    for one, has in ((native, True), (plain, False)):
        page = one.open(site.url("empty.html"))
        assert page.evaluate("'modelContext' in document") is has


def test_names_of_the_site_are_other_origins(browser: Chromium, site: Site) -> None:
    """B7: origins can be told apart in tests; one of them is insecure."""
    page = browser.open(site.url("empty.html", host="shop.test"))
    assert page.evaluate("[location.origin, isSecureContext]") == [site.origin("shop.test"), False]
    page.navigate(site.url("empty.html", host="127.0.0.2"))
    assert page.evaluate("isSecureContext") is True


def test_headers_of_a_page_are_as_its_address_says(browser: Chromium, site: Site) -> None:
    """B3: policies can be tested."""
    page = browser.open(site.url("empty.html", "Content-Security-Policy: default-src 'none'"))
    assert page.evaluate("fetch('/empty.html').then(() => 'got', () => 'refused')") == "refused"


def test_frames_are_looked_into_wherever_they_run(browser: Chromium, site: Site) -> None:
    """B6: same process or another."""
    site.pages["nested.html"] = (
        f"<title>Frames</title><iframe src='{site.url('empty.html')}#near'></iframe>"
        f"<iframe src='{site.url('empty.html', host='localhost')}#far'></iframe>"
    )
    page = browser.open(site.url("nested.html"))
    assert page.evaluate("location.origin", frame="#near") == site.origin()
    assert page.evaluate("location.origin", frame="#far") == site.origin("localhost")


def test_a_crash_and_an_end_leave_the_others_alone(browser: Chromium, site: Site) -> None:
    """B6: a tab can crash in a test."""
    page, other = browser.open(site.url("empty.html")), browser.open(site.url("empty.html", host="localhost"))
    page.crash()
    assert other.evaluate("1 + 1") == 2
    other.close()


def test_a_browser_ends_with_all_its_children() -> None:
    """B5: nothing stays."""
    with running("--headless=new") as browser:
        browser.open("about:blank")
        pid, profile = browser.pid, browser.profile
        assert os.getpgid(pid) == pid
        browser.kill()
        until(lambda: not _living(pid), "the end of all of them")  # who is killed dies when it has its turn
        assert not profile.exists()
        with pytest.raises(ConnectionError):
            browser.call("Browser.getVersion")


def _living(group: int) -> list[str]:
    """The processes of a group that are no zombies."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    state, _, pgrp = stat.read().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(pgrp) == group and state not in "ZX":
                found.append(name)
    return found
