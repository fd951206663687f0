"""The workflow's steps can be run, in their order, in a clean folder; .ci/run calls what is there."""
import os
from pathlib import Path
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = re.compile(r"[\w.-]+/[\w./-]+@v\d+")


def needs(job):
    names = job.get("needs", [])
    return {names} if isinstance(names, str) else set(names)


def steps(workflow):
    """(job, step) of a workflow, in the order in which they run: a job stands after those that it needs."""
    jobs, done = dict(yaml.safe_load(workflow.read_text())["jobs"]), []
    while jobs:
        ready = [name for name, job in jobs.items() if not needs(job) & set(jobs)]
        assert ready, f"{workflow.name}: jobs wait for one another: {sorted(jobs)}"
        done += [(name, step) for name in ready for step in jobs.pop(name)["steps"]]
    return done


def commands(workflow):
    return [step["run"] for _, step in steps(workflow) if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_uses_an_action_or_runs_a_script_that_is_there(workflow):
    for job, step in steps(workflow):
        assert ("run" in step) != ("uses" in step), (job, step)
        assert "uses" not in step or ACTION.fullmatch(step["uses"]), (job, step)
    assert commands(workflow)
    for command in commands(workflow):
        assert subprocess.run(["bash", "-n"], input=command, text=True).returncode == 0
        for word in shlex.split(command):
            if "/" in word:
                assert (ROOT / word).is_file(), f"{workflow.name} runs {word}, which is not there"


@pytest.mark.parametrize("name", [".ci/run", "binder/postBuild"])
def test_the_scripts_are_sound_shell(name):
    assert subprocess.run(["bash", "-n", str(ROOT / name)]).returncode == 0
    assert b"\r" not in (ROOT / name).read_bytes()


def test_the_files_and_targets_that_ci_names_are_there():
    text = re.sub(r"#.*", "", (ROOT / ".ci" / "run").read_text())
    targets = re.findall(r"^([\w./$()]+):", (ROOT / "Makefile").read_text().replace("$(READY)", ".venv/ready"), re.MULTILINE)
    called = re.findall(r"^\s*make (\S+)", text, re.MULTILINE)
    assert len(called) == 4 and set(called) <= set(targets)
    for name in re.findall(r"(?<=\s)(?:tests|requirements|constraints)[\w./-]*", text):
        assert (ROOT / name).exists(), name
    marked = [path.name for path in (ROOT / "tests").glob("test_*.py") if "mark.kernels" in path.read_text()]
    assert len(marked) > 4 and "-m kernels" in text


def test_the_workflow_passes_actionlint():
    tool = shutil.which("actionlint") or shutil.which("actionlint", path=str(ROOT / ".venv" / "bin"))
    if tool is None:
        pytest.skip("there is no actionlint")
    done = subprocess.run([tool, *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_steps_run_in_a_clean_folder(tmp_path):
    """An hour: asked for by BOOK_CI=1."""
    if os.environ.get("BOOK_CI") != "1":
        pytest.skip("BOOK_CI=1 asks for it")
    clean = tmp_path / "clean"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clean)], check=True)
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    for command in [command for workflow in WORKFLOWS for command in commands(workflow)]:
        assert subprocess.run(["bash", "-e", "-c", command], cwd=clean, env=environment).returncode == 0, command
