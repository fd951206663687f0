"""Where the project lives is one setting, absent by default."""
import json
from pathlib import Path
from types import SimpleNamespace

from docutils import nodes
import pytest
from sphinx.errors import ConfigError
import yaml

import repository
import runtime

ROOT = Path(__file__).parents[1]


def config():
    return SimpleNamespace(html_theme_options={"repository_url": "https://github.com/somebody/else", "search_bar_text": "find"})


def test_no_page_names_a_place_unless_told(monkeypatch):
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    found = config()
    repository.set_buttons(None, found)
    options = found.html_theme_options
    assert options["repository_url"] == "" and options["search_bar_text"] == "find" and "use_repository_button" not in options
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert "repository" not in settings and "launch_buttons" not in settings


def test_with_an_address_every_page_has_the_buttons(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/some-body/a.book")
    found = config()
    repository.set_buttons(None, found)
    options = found.html_theme_options
    assert options["repository_url"] == "https://github.com/some-body/a.book"
    assert options["use_repository_button"] and options["use_issues_button"] and options["launch_buttons"]["binderhub_url"]


@pytest.mark.parametrize("address", ["somebody/book", "https://github.com/somebody", "http://github.com/a/b", "https://github.com/a/b/c"])
def test_what_is_no_address_is_named(monkeypatch, address):
    monkeypatch.setenv("BOOK_REPOSITORY", address)
    with pytest.raises(ConfigError, match="BOOK_REPOSITORY is"):
        repository.set_buttons(None, config())


def test_the_workflow_says_where_it_runs():
    text = (ROOT / ".github" / "workflows" / "book.yml").read_text()
    assert "BOOK_REPOSITORY: ${{ github.server_url }}/${{ github.repository }}" in text


def test_a_time_that_was_not_measured_is_not_spoken_of():
    assert runtime.said("here", 12.4) == "12" and runtime.said("publication", None) == ""
    assert runtime.said("publication", 80.2) == " and takes 80 at publication size"


def test_a_build_at_publication_size_keeps_its_times_and_headline_numbers(tmp_path, monkeypatch):
    """The next build has them beside its own, and none before that."""
    monkeypatch.setattr(runtime, "RECORD", tmp_path / "publication.json")
    monkeypatch.setattr(runtime, "times", lambda env: {"chapters/play": 71.4, "chapters/bound": 8.0})
    monkeypatch.setattr(runtime, "link", lambda env, name: nodes.Text(name))
    env = SimpleNamespace(mystnb_config=SimpleNamespace(output_folder=str(tmp_path)))
    glued = {name: {"data": {"text/plain": text}} for name, text in (("top", "1.7414"), ("top_half", "0.0403"))}
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "play.glue.json").write_text(json.dumps(glued))
    assert runtime.numbers_table(env) == [] and "publication" not in runtime.seconds_table(env).astext()
    runtime.keep_record(SimpleNamespace(env=env), None)
    assert not runtime.RECORD.exists()                      # of the default size
    monkeypatch.setenv("BOOK_SIZE", "publication")
    runtime.keep_record(SimpleNamespace(env=env), None)
    assert runtime.record() == {"seconds": {"chapters/play": 71, "chapters/bound": 8}, "numbers": {"play/top": [1.7414, .0403]}}
    table, = runtime.numbers_table(env)
    assert table.astext().split("\n\n")[-2:] == ["1.741\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.040"] * 2
    assert "at publication size" in runtime.seconds_table(env).astext()


def test_every_headline_number_is_glued_with_its_error():
    for chapter, key, *_ in runtime.HEADLINES:
        text = (ROOT / "tests" / "reference" / f"{chapter}.ipynb").read_text()
        assert f'"name": "{key}"' in text and f'"name": "{key}_half"' in text


def test_an_executed_page_offers_its_notebook(tmp_path):
    site = tmp_path / "html"
    (tmp_path / "jupyter_execute" / "chapters").mkdir(parents=True)
    (tmp_path / "jupyter_execute" / "chapters" / "a.ipynb").write_text("{}")
    app = SimpleNamespace(outdir=str(site), builder=SimpleNamespace(format="html"))
    for name, offered in (("chapters/a", True), ("chapters/b", False)):
        context = {}
        repository.offer_notebook(app, name, "page.html", context, None)
        assert context == ({"ipynb_source": f"{name}.ipynb"} if offered else {})
        assert (site / "_sources" / f"{name}.ipynb").exists() == offered
