"""What mkdocs does to make the site (make docs) of the files that stand in the repository."""

import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

REPOSITORY = "https://github.com/ndbridge/ndbridge"
ROOT = Path(__file__).parent.parent
API = ROOT / "build" / "api"  # what test/apidoc writes
OUTSIDE = {"README.md": "index.md"} | {name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
COMMENT = re.compile(r"\A<!--.*?-->\n")  # before the title, which mkdocs would not see
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|preload)["']?[^>]*\bhref=["']?(?:https?:)?//""")


def on_config(config):
    """Make the navigation of the lists under "Documentation" in README.md. The line before each is its title."""
    config.nav = [{"Overview": "index.md"}]
    pages = []
    for line in (ROOT / "README.md").read_text().partition("\n## Documentation\n")[2].splitlines():
        if re.fullmatch(r"\w.*:", line):
            pages = []
            config.nav.append({line[:-1]: pages})
        elif entry := re.match(r"- \[[^]]*\]\(([^)#]+\.md)\)", line):
            pages.append(page_of(entry[1]))
    for group in config.nav[1:]:
        for title, pages in group.items():
            if "results/README.md" in pages:
                results = sorted((ROOT / "docs" / "results").glob("*.md"), reverse=True)
                pages += [page for result in results if (page := f"results/{result.name}") not in pages]
            if "packages.md" in pages:
                names = (path.relative_to(API).as_posix() for path in API.rglob("*.md"))
                names = sorted(names, key=lambda name: (name.startswith("adapters/"), name))
                at = pages.index("packages.md")
                pages[at] = {"Go API": ["packages.md", *({name[:-3]: f"api/{name}"} for name in names)]}
    return config


def page_of(path):
    """The page of the site that a file of the repository becomes, or None."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    if (API / f"{path}.md").is_file():
        return f"api/{path}.md"
    return None


def on_files(files, config):
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    for path in sorted(API.rglob("*.md")):
        files.append(File.generated(config, f"api/{path.relative_to(API).as_posix()}", content=path.read_text()))
    return files


def on_page_markdown(markdown, page, **_):
    """Let links of the repository lead to pages of the site, or else to the repository."""
    markdown = COMMENT.sub("", markdown)
    here = page.file.src_uri
    if here.startswith("api/"):
        return markdown
    folder = posixpath.dirname(next((path for path, name in OUTSIDE.items() if name == here), f"docs/{here}"))

    def lead(match):
        before, target, after = match.groups()
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if found := page_of(path):
            return before + posixpath.relpath(found, posixpath.dirname(here) or ".") + after
        if not (ROOT / path).exists():
            raise PluginError(f"{here}: {target} is neither a page nor a file of the repository")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{before}{REPOSITORY}/{kind}/main/{path}{after}"

    parts, end = [], 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(lead, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(lead, markdown[end:])])


def on_post_page(output, page, **_):
    """Refuse pages that load anything from the network."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from the network: {found[0]}")
    return output
