"""The book's parts fit together: contents, chapters, references, and the hash that results are kept under."""
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

import captions
import conftest
import front
import jupytext
from jupytext.config import load_jupytext_config
import nbformat
from PIL import Image
import pytest
import saved
import tree
import yaml

ROOT = Path(__file__).parents[1]


def listed(node):
    """Every file that a table of contents names."""
    if isinstance(node, dict):
        return [node[key] for key in ("root", "file") if key in node] + [name for value in node.values()
                                                                        for name in listed(value)]
    return [name for value in node for name in listed(value)] if isinstance(node, list) else []


def test_contents_list_every_chapter_once():
    names = listed(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    assert sorted(names) == sorted(f"chapters/{path.stem}" for path in (ROOT / "chapters").iterdir()
                                   if not path.name.startswith(".") and path.suffix != ".ipynb")


def test_what_the_suite_begins_with_is_there():
    assert all((ROOT / name).is_file() for name in conftest.FIRST)


def test_every_reference_has_a_chapter():
    for path in (ROOT / "tests" / "reference").iterdir():
        chapter = ROOT / "chapters" / f"{path.stem}.md"
        assert path.suffix == ".ipynb" and chapter.exists(), f"{path.name} is the reference of no chapter"
        assert any(cell.cell_type == "code" for cell in nbformat.read(path, 4).cells)


def test_pins_agree():
    """Each package that the project asks for is pinned once more, and to the same version, in constraints.txt."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text().lower(), re.MULTILINE))
    for name in ("requirements.txt", "requirements-cluster.txt", "requirements-widgets.txt"):
        for line in (ROOT / name).read_text().lower().splitlines():
            if line and not line.startswith("#"):
                package, version = line.split("==")
                assert pins[re.sub(r"\[.*", "", package)] == version


CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
PYTHON = {"name": "python", "version": "3.11.7", "file_extension": ".py", "pygments_lexer": "ipython3",
          "codemirror_mode": {"name": "ipython", "version": 3}}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_saving_a_chapter_from_jupyterlab_changes_no_byte(path, tmp_path):
    """JupyterLab adds the language, trust and times of execution, and sets the kernel's name first."""
    kept = path.read_bytes()
    notebook = jupytext.read(path)
    jupytext.write(notebook, tmp_path / "plain.md")
    assert (tmp_path / "plain.md").read_bytes() == kept, f"{path.name} is not as JupyterLab saves it: run `make chapters`"
    kernel = notebook.metadata["kernelspec"]
    kernel = {key: kernel[key] for key in ("name", "display_name", "language")}
    notebook.metadata.update(language_info=PYTHON, kernelspec=kernel)
    for cell in notebook.cells:
        cell.metadata.update(trusted=True, execution={"iopub.execute_input": "2026-01-01T00:00:00Z"})
    config = load_jupytext_config(str(path))
    assert jupytext.writes(notebook, fmt="md:myst", config=config).encode() == kept
    assert saved.saved(kept.decode()).encode() == kept


def test_a_chapter_typed_by_hand_is_written_as_jupyterlab_saves_it():
    typed = ("---\njupytext:\n  text_representation: {extension: .md, format_name: myst}\n---\n\n# A\n\n"
             "```{code-cell} ipython3\n---\nmystnb:\n  figure:\n    name: a\n    caption: |\n      It is\n"
             "      so.\n---\nx = 1\n```\n")
    text = saved.saved(typed)
    assert "    caption: It is so.\n---\nx = 1\n" in text and "ipython3" in text and text == saved.saved(text)
    assert saved.one_line("One.\n\nTwo.\n") == "One.\n\nTwo.\n"


def test_a_checkout_on_windows_has_the_bytes_of_the_repository(tmp_path):
    """With core.autocrlf git would end lines otherwise: shell scripts, checksums and chapters fail then."""
    names = [".gitattributes", ".ci/run", "Makefile", "chapters/bound.md", "data/README.md", "lib/problem.py",
             *(path.relative_to(ROOT).as_posix() for path in (ROOT / "data").rglob("*") if path.is_file()),
             *(path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").glob("*.png"))]
    there, here = tmp_path / "there", tmp_path / "here"
    for name in names:
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, there / name)

    def git(*command):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=true", *command],
                       check=True, capture_output=True)

    if shutil.which("git") is None:
        pytest.skip("there is no git")
    git("init", "-q", str(there))
    git("-C", str(there), "add", "-f", ".")
    git("-C", str(there), "commit", "-q", "-m", "all")
    git("clone", "-q", "-c", "core.autocrlf=true", str(there), str(here))
    assert [name for name in names if (here / name).read_bytes() != (ROOT / name).read_bytes()] == []


def test_every_named_table_is_counted_as_one():
    """`classes: tabular` stands inside `figure`; elsewhere it is passed over and the table is called a figure."""
    found = 0
    for path in CHAPTERS:
        for cell in jupytext.read(path).cells:
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            if figure:
                found += 1
                assert figure["name"].startswith("tab-") == (figure.get("classes") == "tabular"), (path.name, figure["name"])
    assert found > 20


def test_the_readme_shows_the_main_figure():
    assert front.PICTURE.exists(), "the picture of the README is missing: run `make book`, then `make figure`"
    alt, name = re.search(r"!\[([^]]+)\]\(([^)]+)\)", (ROOT / "README.md").read_text()).groups()
    assert alt.strip() and ROOT / name == front.PICTURE and front.PICTURE.stat().st_size < 60_000


def test_the_main_figure_is_taken_from_the_page(tmp_path):
    page = tmp_path / "page.html"
    with pytest.raises(ValueError, match="is missing: run `make book`"):
        front.main_figure(page)
    page.write_text('<img src="no.png">')
    with pytest.raises(ValueError, match="no figure fig-main"):
        front.main_figure(page)
    page.write_text('<img src="no.png"><figure class="a" id="fig-main">\n<a><img alt="x" src="b/c.png"></a></figure>')
    (tmp_path / "b").mkdir()
    drawn = Image.new("RGB", (8, 4), "white")
    drawn.paste((0, 114, 178), (2, 1, 5, 3))
    drawn.save(tmp_path / "b" / "c.png")
    front.write(front.main_figure(page), tmp_path / "small.png")
    assert Image.open(tmp_path / "small.png").convert("RGB").tobytes() == drawn.tobytes()


@pytest.fixture
def small_tree(tmp_path):
    """A chapter that runs lib.a and the package lib.deep, of which it asks for one module; lib.c is its own."""
    sources = {"lib/__init__.py": "", "lib/a.py": "def f():\n    from lib import b\n", "lib/b.py": "import numba\n",
               "lib/c.py": "\n", "lib/deep/__init__.py": "from .low import x\n", "lib/deep/low.py": "from .. import d\n",
               "lib/deep/law.py": "", "lib/deep/other.py": "", "lib/d.py": "",
               "data/table.csv": "1\n", "requirements.txt": "", "constraints.txt": "", "bench/run.py": "",
               "chapters/one.md": "# One\n\n```{code-cell} ipython3\n:tags: [hide-input]\n%matplotlib inline\n"
                                  "import lib.a\nfrom lib.deep.law import psi\n```\n"}
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name, changes", [
    ("lib/a.py", True), ("lib/b.py", True), ("lib/c.py", False), ("lib/d.py", True), ("lib/__init__.py", True),
    ("lib/deep/__init__.py", True), ("lib/deep/low.py", True), ("lib/deep/law.py", True), ("lib/deep/other.py", False),
    ("data/table.csv", True), ("data/new.csv", True), ("bench/run.py", False), ("requirements.txt", True),
    ("lib/__pycache__/a.pyc", False), ("chapters/one.md", False)])
def test_an_edit_changes_the_key_of_what_depends_on_it(small_tree, name, changes):
    chapter = small_tree / "chapters" / "one.md"
    before = tree.results_key(small_tree, chapter)
    (small_tree / name).parent.mkdir(exist_ok=True)
    with (small_tree / name).open("a") as out:
        out.write("\n# edited\n")
    assert (tree.results_key(small_tree, chapter) != before) == changes


def test_a_chapter_may_not_import_what_is_not_followed(small_tree):
    chapter = small_tree / "chapters" / "one.md"
    chapter.write_text("```{code-cell}\nfrom bench import run\n```\n")
    with pytest.raises(ValueError, match="a chapter imports bench: "):
        tree.results_key(small_tree, chapter)
    (small_tree / "numba" / "lib-0").mkdir(parents=True)         # a folder of no code, as of compiled kernels
    chapter.write_text("```{code-cell}\nimport numba\n```\n")
    assert tree.results_key(small_tree, chapter)


RUN = """
import ast, json, os, sys
import matplotlib.pyplot, myst_nb, numba, numpy, pandas, scipy, sklearn
runs = {}
for name, code in json.load(sys.stdin).items():
    ends = os.pipe()
    if os.fork() == 0:
        for node in ast.parse(code).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                exec(ast.unparse(node))
        with open(ends[1], "w") as out:
            json.dump([module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "lib"], out)
        os._exit(0)
    os.close(ends[1])
    runs[name] = json.load(open(ends[0]))
    os.wait()
json.dump(runs, sys.stdout)
"""


@pytest.fixture(scope="module")
def copied_tree(tmp_path_factory):
    """A copy of lib and the chapters; for each chapter the files of lib that Python runs at its imports."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("lib", "chapters"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    code = {path.name: tree.chapter_code(path.read_text()) for path in sorted((folder / "chapters").glob("*.md"))}
    code = {name: text for name, text in code.items() if text}
    done = subprocess.run([sys.executable, "-c", RUN], input=json.dumps(code), capture_output=True, text=True,
                          cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)})
    assert done.returncode == 0, done.stderr
    return folder, {folder / "chapters" / name: set(map(Path, files)) for name, files in json.loads(done.stdout).items()}


@pytest.mark.slow
def test_a_chapter_depends_on_the_files_that_python_runs_for_it(copied_tree):
    folder, runs = copied_tree
    assert len(runs) > 15
    for chapter, files in runs.items():
        assert set(tree.modules(folder, tree.imports(tree.chapter_code(chapter.read_text())))) == files, chapter.name


@pytest.mark.slow
def test_an_edit_of_a_module_reaches_the_chapters_that_run_it_and_no_other(copied_tree):
    folder, runs = copied_tree
    before = {chapter: tree.results_key(folder, chapter) for chapter in runs}
    for path in sorted((folder / "lib").rglob("*.py"))[::28]:
        good = path.read_text()
        path.write_text(good + "\n# edited\n")
        changed = {chapter for chapter in runs if tree.results_key(folder, chapter) != before[chapter]}
        assert changed == {chapter for chapter in runs if path in runs[chapter]}, path.name
        path.write_text(good)


@pytest.mark.parametrize("name, value", [("BOOK_SIZE", "publication"), ("BOOK_YELP", "yelp"), ("BOOK_ARXIV", "a:b")])
def test_a_setting_is_part_of_the_key(small_tree, monkeypatch, name, value):
    chapter = small_tree / "chapters" / "one.md"
    monkeypatch.delenv(name, raising=False)
    before = tree.results_key(small_tree, chapter)
    monkeypatch.setenv(name, value)
    assert tree.results_key(small_tree, chapter) != before


def test_a_readers_own_data_are_part_of_the_key_and_found_from_every_folder(small_tree, tmp_path_factory, monkeypatch):
    """Kernels run in the chapters' folder; what was given relative to another is made absolute."""
    here, chapter = tmp_path_factory.mktemp("here"), small_tree / "chapters" / "one.md"
    (here / "yelp").mkdir()
    for name in ("snapshot.json", "clicks.csv", "yelp/review.json"):
        (here / name).write_text("1\n")
    monkeypatch.chdir(here)
    for name in ("PYTHONPATH", "BOOK_BUILD"):
        monkeypatch.setenv(name, "")                            # put back afterwards
    monkeypatch.setenv("BOOK_ARXIV", os.pathsep.join(["snapshot.json", "clicks.csv"]))
    monkeypatch.setenv("BOOK_YELP", "yelp")
    tree.set_environment(small_tree)
    assert os.environ["BOOK_ARXIV"] == os.pathsep.join([str(here / "snapshot.json"), str(here / "clicks.csv")])
    assert os.environ["BOOK_YELP"] == str(here / "yelp")
    for name in ("clicks.csv", "yelp/review.json"):
        before = tree.results_key(small_tree, chapter)
        (here / name).write_text("1\n2\n")
        assert tree.results_key(small_tree, chapter) != before
    monkeypatch.setenv("BOOK_ARXIV", "snapshot.json" + os.pathsep)
    tree.set_environment(small_tree)
    assert os.environ["BOOK_ARXIV"] == str(here / "snapshot.json") + os.pathsep    # lib.sources says what is wrong


def test_the_code_of_a_chapter_leaves_out_options_and_magics():
    text = ("```{code-cell} ipython3\n---\nmystnb:\n  image: {alt: x}\n---\n%time\nimport lib.dp\n```\n\n"
            "```python\nimport lib.no\n```\n\n```{code-cell}\n:tags: [hide-input]\nfrom lib import bound\n```\n")
    assert tree.imports(tree.chapter_code(text)) == {"lib.dp", "lib", "lib.bound"}


def test_the_index_of_figures_names_the_functions_behind_each(tmp_path):
    cells = ["from lib import dp, figures as draw\nfrom lib.bound import hindsight\nimport numpy as np",
             "---\nmystnb:\n  figure:\n    name: fig-a\n    caption: A.\n---\n%time\n"
             "fig = draw.slices(np.zeros(3), hindsight(p).round(), dp.__name__.strip())\nglue('a', fig, display=False)",
             "---\nmystnb:\n  figure: {name: fig-b, caption: B.}\n---\nplt.plot(x)"]
    text = "---\njupytext:\n  text_representation: {extension: .md, format_name: myst}\n---\n\n" + "\n\n".join(
        f"```{{code-cell}} ipython3\n{cell}\n```" for cell in cells)
    (tmp_path / "one.md").write_text(text)
    functions = ["lib.bound.hindsight", "lib.figures.slices"]         # no methods of what these return
    assert captions.makers(tmp_path / "one.md") == {"fig-a": functions, "a": functions, "fig-b": []}
