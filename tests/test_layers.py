"""Each module of lib imports only from the layers below its own."""
from pathlib import Path

import pytest
import tree

LIB = Path(__file__).parents[1] / "lib"
LAYERS = (                              # from the bottom; modules side by side do not know one another
    "problem streams scene store records readers laws",
    "kernels foresight charges lattice sweep documents own statistics chunks instances verdicts",
    "tangents levels lanes posterior priors yelp arxiv citeulike",
    "steps",
    "envelopes lookup",
    "grids",
    "dp datasets predict",
    "policies relaxations optimum losses sources cautions",
    "lookahead",
    "simulate dual exact specs",
    "bound",
    "experiments replay contest",
    "analysis results",
    "figures",
    "portraits diagrams ranks",
    "report ledger",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}


def imported(source):
    """The modules of lib that `source` imports."""
    return {name.split(".")[1] for name in tree.imports(source) if name.startswith("lib.")}


def upward(name, source, known):
    """What module `name` imports that is not below it, in words."""
    found = sorted(imported(source) & known)
    if name == "figures":
        return [f"figures draws arrays and imports nothing of lib, but it imports {other}" for other in found]
    return [f"{name} imports {other}, which is not below it" for other in found
            if RANK.get(other, len(LAYERS)) >= RANK[name]]


@pytest.mark.parametrize("path", sorted(LIB.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_imports_point_down(path):
    known = {other.stem for other in LIB.glob("[!_]*.py")}
    assert path.stem in {*RANK, "figures"}, f"say in LAYERS where {path.name} belongs"
    assert upward(path.stem, path.read_text(), known) == []


@pytest.mark.parametrize("name, source", [
    ("dp", "from lib import policies"),
    ("policies", "import numpy\nfrom lib.bound import hindsight"),
    ("problem", "def f():\n    import lib.simulate as s"),
    ("streams", "from . import experiments"),
    ("posterior", "from .dp import solve"),
    ("experiments", "from lib import figures"),
    ("figures", "from lib.problem import Bracket"),
])
def test_an_upward_import_is_reported(name, source):
    assert len(upward(name, source, {*RANK, "figures"})) == 1


def test_a_downward_import_is_not():
    assert upward("simulate", "from lib import streams\nfrom lib.policies import ucb\nimport numpy", set(RANK)) == []
