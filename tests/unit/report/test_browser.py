"""The page of a report in a browser: it works with a mouse, a keyboard and a finger, and for everyone.

Debian's Chromium is used, because playwright's own is a download.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wide_fixture import LANGUAGES, written

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="a browser is driven by playwright, which is in the extra `dev`"
)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe checks pages, and is in the extra `dev`")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENS = {"wide": (1440, 900), "phone": (390, 844)}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="the page is opened in Chromium: `apt-get install chromium`"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("wide"))
        return written()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[f"{screen} {scheme}" for screen in SCREENS for scheme in ("light", "dark")])
def page(request: pytest.FixtureRequest, browser: Any, path: Path) -> Iterator[Any]:
    """The open page, whose console must stay empty."""
    screen, scheme = request.param.split()
    width, height = SCREENS[screen]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=screen == "phone", offline=True
    )
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("button.entry", state="attached")
    yield page
    context.close()
    assert said == []


def entry(page: Any, exhibit: str, number: int = 0) -> Any:
    return page.locator(f"figure[data-exhibit={exhibit}] button.entry").nth(number)


def serious(page: Any) -> list[Any]:
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]


def test_axe_finds_nothing_serious_in_the_page_and_in_what_is_behind_an_entry(page: Any) -> None:
    assert serious(page) == []
    entry(page, "rows").click()
    page.evaluate("document.querySelectorAll('dialog details').forEach((each) => each.open = true)")
    assert serious(page) == []


def test_nothing_is_wider_than_the_screen_and_the_contents_leave_room(page: Any) -> None:
    width, height = page.viewport_size["width"], page.viewport_size["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").bounding_box()["y"] < height / 4
    for caption in page.locator("caption, figcaption").all():
        if box := caption.bounding_box():
            assert box["x"] >= 0 and box["x"] + box["width"] <= width, "a caption is cut"
    for caption in page.locator("figure.exhibit table.exhibit caption:visible").all():
        assert caption.bounding_box()["width"] >= min(450, width - 50), "a caption is as narrow as its table"


def test_the_letters_of_a_matrix_of_16_languages_can_be_read(page: Any) -> None:
    """On a phone, they have at least seven pixels of the style sheet, each of which has several of the screen."""
    least = {1440: 10, 390: 7}[page.viewport_size["width"]]
    sizes = page.evaluate(
        """[...document.querySelectorAll('figure[data-exhibit=matrix] svg text')].map((text) => {
            const {a, b} = text.getScreenCTM();
            return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
        })"""
    )
    texts = page.locator("figure[data-exhibit=matrix] svg text").all_text_contents()
    assert min(sizes) >= least
    assert {name for name, _ in LANGUAGES.values()} <= {text.strip() for text in texts}


def test_an_entry_of_a_table_leads_to_its_cells_examples_and_commands(page: Any) -> None:
    entry(page, "rows", 1).click()
    dialog = page.locator("dialog")
    assert dialog.locator("h2").text_content() == "Full fine-tuning · English · other-family"
    assert dialog.locator("table.cells tbody tr").count() == 30, "15 targets in two seeds"
    assert dialog.locator("table.examples tbody tr").count() > 0
    texts = dialog.evaluate("(dialog) => dialog.textContent")
    assert "snakemake --cores all --force -- results/wide/cells/news/large/full-ft/en/" in texts
    assert "xlgrid trace results/wide/exhibits/rows.csv --row 'full-ft en' --column 'other-family'" in texts
    dialog.locator("table.cells button").nth(4).click()
    assert "seed 1" in dialog.locator("h3").text_content() and page.evaluate("document.activeElement.tagName") == "H3"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "entry", "the focus is where it was"


def test_our_number_beside_a_published_one_leads_to_its_cells(page: Any) -> None:
    figure, dialog = page.locator("figure[data-exhibit=matrix]"), page.locator("dialog")
    figure.locator(".comparison summary").click()
    ours = figure.locator(".comparison button.entry")
    assert ours.count() == 16 * 16
    for number, title in ((1, "English · Français"), (15 * 16, "한국어 · English")):
        ours.nth(number).click()
        assert dialog.locator("h2").text_content() == title
        assert dialog.locator("table.cells tbody tr").count() == 2
        page.keyboard.press("Escape")


def test_a_matrix_is_used_by_a_pointer_and_by_a_keyboard(page: Any) -> None:
    quads = page.locator("figure[data-exhibit=gain] svg path[role=button]")
    assert quads.count() == 16 * 16
    quads.nth(1).click()
    assert page.locator("dialog h2").text_content() == "English · Français"
    page.keyboard.press("Escape")
    for key in ("ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    assert page.locator("dialog h2").text_content() == "Français · English"
    assert page.locator("table.cells tbody tr").count() == 4, "two seeds of two methods"


@pytest.mark.parametrize("exhibit", ["matrix", "panels"])
def test_the_place_of_an_entry_has_its_number(page: Any, exhibit: str) -> None:
    """Also in several matrices, whose entries are in one table."""
    drawn = page.evaluate(
        """(exhibit) => {
            const boxes = (what) => [...document.querySelectorAll(`figure[data-exhibit=${exhibit}] svg ${what}`)]
                .map((each) => ({each, box: each.getBoundingClientRect()}));
            const texts = boxes('text');
            return boxes('path[role=button]').map(({each, box}) => [each.getAttribute('aria-label').split(': ').at(-1),
                texts.find(({box: {x, y, width, height}}) => x + width / 2 > box.left && x + width / 2 < box.right
                    && y + height / 2 > box.top && y + height / 2 < box.bottom).each.textContent.trim()]);
        }""",
        exhibit,
    )
    assert len(drawn) == {"matrix": 256, "panels": 24}[exhibit]
    assert [float(number.rstrip("†")) for _, number in drawn] == pytest.approx(
        [float(text.split()[0]) for text, _ in drawn], abs=0.51
    )


def test_a_table_is_sorted_and_filtered_and_goes_back_to_its_order(page: Any) -> None:
    figure = page.locator("figure[data-exhibit=rows]")
    before = figure.locator("tbody").inner_text()
    head = figure.locator("button.sort", has_text="other-family")
    head.click()
    assert head.locator("xpath=..").get_attribute("aria-sort") == "descending"
    column = [float(row.split("\t")[-1].split()[0]) for row in figure.locator("tbody").inner_text().splitlines()]
    assert column == sorted(column, reverse=True) and len(column) == 32
    figure.locator("input").fill("bitfit")
    assert figure.locator("tbody tr:visible").count() == 16
    figure.locator("input").fill("")
    head.click()
    head.click()
    assert figure.locator("tbody").inner_text() == before


def test_without_scripts_the_page_has_all_of_its_contents(browser: Any, path: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("nav a:visible").count() > 4
    assert page.locator("figure[data-exhibit=rows] td:visible").count() == 32 * 3
    assert page.locator("figure[data-exhibit=matrix] svg:visible").count() == 1
    assert page.locator("button, input").count() == 0
    context.close()
