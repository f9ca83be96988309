"""Pages that lie outside docs/, as pages of the site: mkdocs calls the functions of this file (`hooks` in mkdocs.yml).

On GitHub, pages link to each other and to files by relative paths. The site has the pages of `PAGES` too, and links to them lead to
their places there. The site shows the path of any other file outside docs/, such as a study, without a link.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
# Path in the project -> path in the site. Each paper's README says where its published numbers come from.
PAGES = {
    "packages/snakemake-executor-plugin-submitit/README.md": "executor.md",
    "packages/snakemake-logger-plugin-xlgrid/README.md": "logger.md",
    "benchmarks/README.md": "measurements.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    **{
        f"src/xlgrid/papers/{paper}/reference/README.md": f"papers/published-{paper}.md"
        for paper in ("foroutan2023", "luo2021", "pfeiffer2020", "pfeiffer2022")
    },
    **{f"reference/{paper}/README.md": f"papers/published-{paper}.md" for paper in ("adelani2023", "ebrahimi2025")},
}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def relinked(markdown: str, page: str, place: str) -> str:
    """A page's text with the links that are right in the site.

    Args:
        page: the path of the page in the project, from which its links lead.
        place: the path of the page in the site.
    """

    def link(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if target in PAGES:
            target = PAGES[target]
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif (ROOT / target).exists():
            return text if text.startswith("`") else f"{text} (`{target}`)"
        else:
            return match[0]  # mkdocs warns of it
        return f"[{text}]({posixpath.relpath(target, posixpath.dirname(place) or '.')}{anchor})"

    return LINK.sub(link, markdown)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for page, place in PAGES.items():
        text = relinked((ROOT / page).read_text(encoding="utf-8"), page, place)
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let the links of a page of docs/ that lead out of docs/ lead to pages of the site."""
    place = page.file.src_uri
    return markdown if place in PAGES.values() else relinked(markdown, f"docs/{place}", place)
