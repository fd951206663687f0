"""What `make mutants` plants: one operator or constant of a file at a time, where a reader of code would see one.

Messages, docstrings, annotations and imports are left alone.
"""
import ast
import random
import re
from typing import NamedTuple

OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
             ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
             ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and")}
NAMES = {a: b for one, two in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax")) for a, b in ((one, two), (two, one))}


class Mutant(NamedTuple):
    """One change: `before` -> `after` at the bytes `start` to `end` of `path`, inside the function that begins at `function`."""

    path: str
    line: int
    function: int       # its first line, 0 outside all functions
    start: int
    end: int
    before: str
    after: str


class Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path, source):
        self.path, self.source, self.function, self.found = path, source, 0, []
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def place(self, node, end=False):
        line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        return self.starts[line - 1] + column

    def add(self, start, end, after):
        line = self.source[:start].count(b"\n") + 1
        self.found.append(Mutant(self.path, line, self.function, start, end, self.source[start:end].decode(), after))

    def operator(self, left, op, right):
        """The sign between two operands, whatever brackets and spaces stand around it."""
        if type(op) in OPERATORS:
            old, new = OPERATORS[type(op)]
            start = self.place(left, end=True)
            between = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.source[start:self.place(right)])
            at = start + between.index(old.encode())
            self.add(at, at + len(old), new)

    def visit_FunctionDef(self, node):
        for default in filter(None, node.args.defaults + node.args.kw_defaults):
            self.visit(default)
        around, self.function = self.function, node.decorator_list[0].lineno if node.decorator_list else node.lineno
        for statement in node.body:
            self.visit(statement)
        self.function = around

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit(node.value)

    def visit_Assign(self, node):
        if getattr(node.targets[0], "id", None) != "__all__":
            self.generic_visit(node)

    def visit_Raise(self, node):
        """Messages are not mutated."""

    visit_JoinedStr = visit_Import = visit_ImportFrom = visit_Raise

    def visit_BinOp(self, node):
        self.operator(node.left, node.op, node.right)
        self.generic_visit(node)

    def visit_Compare(self, node):
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            self.operator(left, op, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for left, right in zip(node.values, node.values[1:]):
            self.operator(left, node.op, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.USub)):
            start = self.place(node)
            self.add(start, start + (3 if isinstance(node.op, ast.Not) else 1), "")
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            after = str(not value)
        elif isinstance(value, (int, float)):
            after = repr(value + 1 if isinstance(value, int) or value == 0 else 1.1 * value)
        else:
            return
        self.add(self.place(node), self.place(node, end=True), after)

    def visit_Name(self, node):
        if node.id in NAMES:
            self.add(self.place(node), self.place(node, end=True), NAMES[node.id])

    def visit_Attribute(self, node):
        self.visit(node.value)
        if node.attr in NAMES:
            end = self.place(node, end=True)
            self.add(end - len(node.attr), end, NAMES[node.attr])

    def visit_Return(self, node):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
            one, two = node.value.elts[:2]
            spots = [self.place(one), self.place(one, end=True), self.place(two), self.place(two, end=True)]
            text = [self.source[a:b].decode() for a, b in zip(spots, spots[1:])]
            if text[0] != text[2]:
                self.add(spots[0], spots[3], text[2] + text[1] + text[0])
        self.generic_visit(node)


def mutants(root, path):
    """Every mutant of the file `path` of `root`, in the order of a shuffle that depends on the path alone."""
    source = (root / path).read_bytes()
    finder = Finder(path, source)
    finder.visit(ast.parse(source))
    found = sorted(set(finder.found))
    random.Random(path).shuffle(found)
    return found


def mutated(source, mutant):
    return source[:mutant.start] + mutant.after.encode() + source[mutant.end:]
