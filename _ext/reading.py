"""Sphinx extension: how long a chapter takes to read and what it builds on, and long proofs that fold.

`` {reading}`bound, dynamic_program` `` below a chapter's title becomes a sentence with its minutes, at WORDS words and formulas a
minute without code, and links to the chapters named; `` {reading}`nothing` `` names none.
"""
from docutils import nodes
from runtime import link
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole

WORDS = 200                         # read in a minute
FORMULA = 10                        # words that a displayed formula counts for
LONG = 120                          # words from which on a proof folds
UNREAD = (nodes.literal_block, nodes.comment, nodes.raw, nodes.image)


class Reading(nodes.Inline, nodes.Element):
    """Where the sentence goes."""


class ReadingRole(SphinxRole):
    def run(self):
        needs = [] if self.text == "nothing" else [name.strip() for name in self.text.split(",")]
        missing = [name for name in needs if f"chapters/{name}" not in self.env.found_docs]
        if missing:
            message = self.inliner.reporter.error(f"reading: there is no chapter {missing[0]!r}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [Reading(needs=[f"chapters/{name}" for name in needs])], []


def words(node):
    """Words of a node's text; a displayed formula counts for FORMULA, code and pictures for none."""
    if isinstance(node, UNREAD):
        return 0
    if isinstance(node, nodes.math_block):
        return FORMULA
    if isinstance(node, nodes.Text):
        return len(node.split())
    return sum(map(words, node.children))


def sentence(env, minutes, needs):
    """The nodes of the sentence."""
    found = [nodes.Text(f"About {minutes} minute{'s' * (minutes != 1)} to read" + ("; builds on " if needs else ""))]
    for n, name in enumerate(needs):
        between = "" if n == 0 else " and " if n == len(needs) - 1 else ", "
        found += [nodes.Text(between), link(env, name)]
    return [nodes.emphasis("", "", *found, nodes.Text("."))]


class ShowReading(SphinxPostTransform):
    default_priority = 8            # before references are resolved, once the numbers of the run are in

    def run(self, **kwargs):
        for node in list(self.document.findall(Reading)):
            minutes = max(1, round(words(self.document) / WORDS))
            node.replace_self(sentence(self.env, minutes, node["needs"]))


class FoldProofs(SphinxPostTransform):
    default_priority = 900          # the last, when nothing looks for a proof any more
    formats = ("html",)

    def run(self, **kwargs):
        for proof in [node for node in self.document.findall(nodes.Element) if node.get("classes", [])[:2] == ["proof", "proof"]]:
            if words(proof) >= LONG:
                parent, place = proof.parent, proof.parent.index(proof)
                opened, closed = (nodes.raw("", html, format="html") for html in (
                    '<details class="folded"><summary>The proof</summary>', "</details>"))
                parent[place:place + 1] = [opened, proof, closed]


def setup(app):
    app.add_node(Reading)
    app.add_role("reading", ReadingRole())
    app.add_post_transform(ShowReading)
    app.add_post_transform(FoldProofs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
