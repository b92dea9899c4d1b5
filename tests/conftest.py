"""A real browser for the tests that look at pages."""

import re
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser():
    """Start Chromium once, or skip what needs it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser tests")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: no browser tests")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_file(browser):
    """Open a page from a file, all else blocked; afterwards check that it ran cleanly."""
    complaints, contexts = [], []

    def route(request):
        complaints.append(f"asked for {request.request.url}")
        request.abort()

    def open_page(file, width=820, **options):
        context = browser.new_context(viewport={"width": width, "height": 1000}, **options)
        context.route(re.compile("^(?!file:|blob:|data:)"), route)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: line.type in ("error", "warning") and complaints.append(line.text))
        page.goto(file.as_uri())
        page.set_default_timeout(10_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints
