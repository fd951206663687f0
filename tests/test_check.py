"""`make check` takes the tests that a change can break, nearest first."""
import subprocess
import sys

import check
import pytest

FILES = {"lib/__init__.py": "", "lib/low.py": "", "lib/dp/__init__.py": "from lib.dp.solve import value\n",
         "lib/dp/solve.py": "from lib import low\n", "lib/other.py": "", "_ext/pages.py": "", "chapters/one.md": "",
         "tests/test_low.py": "from lib.low import x\n", "tests/test_dp.py": "from lib import dp\n", "tests/test_book.py": "",
         "tests/test_other.py": "def test():\n    from lib import other\n", "tests/test_pages.py": "import pages\n"}


@pytest.fixture
def small(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name, chosen", [
    ("lib/low.py", ["tests/test_low.py", "tests/test_dp.py", "lib/low.py"]),
    ("lib/dp/solve.py", ["tests/test_dp.py", "lib/dp/solve.py"]),
    ("lib/other.py", ["tests/test_other.py", "lib/other.py"]),
    ("tests/test_dp.py", ["tests/test_dp.py"]),
    ("_ext/pages.py", ["tests/test_book.py", "tests/test_pages.py"]),
    ("chapters/one.md", ["tests/test_book.py"]),
    ("lib/gone.py", [])])
def test_a_change_chooses_the_tests_that_run_it(small, name, chosen):
    assert check.selection(small, {name}) == chosen


@pytest.mark.parametrize("name", ["conftest.py", "constraints.txt", "lib/__init__.py"])
def test_what_all_depend_on_chooses_every_test(small, name):
    chosen = {test for test in check.selection(small, {name}) if test.startswith("tests")}
    assert chosen >= {"tests/test_low.py", "tests/test_dp.py", "tests/test_other.py"}


def test_a_package_is_named(small):
    assert check.package(small, "dp") == {"lib/dp/__init__.py", "lib/dp/solve.py"}
    assert check.package(small, "low") == {"lib/low.py"}
    assert check.selection(small, check.package(small, "dp"))[0] == "tests/test_dp.py"
    with pytest.raises(ValueError, match="PACKAGE is no: there is no lib/no"):
        check.package(small, "no")


def test_git_says_what_has_changed(small):
    with pytest.raises(ValueError, match="git says of"):
        check.changed(small / "absent")
    git = ["git", "-C", str(small), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    assert check.changed(small) == set()
    (small / "lib" / "low.py").write_text("x = 1\n")
    (small / "lib" / "new.py").write_text("")
    (small / "lib" / "other.py").unlink()
    assert check.changed(small) == {"lib/low.py", "lib/new.py", "lib/other.py"}


def test_no_test_is_started_when_the_time_is_over():
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--within=0", "tests/test_check.py", "-k", "package"],
                          cwd=check.ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "1 tests were not run: the time of --within was over" in done.stdout
