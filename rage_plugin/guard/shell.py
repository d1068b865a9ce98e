"""Bash text → the simple commands in it, each with its words; or `Refusal` when it is not certain.

tree-sitter-bash reads the text. Only node types that are listed here are understood: a construct
that is not listed is refused, never skipped. Words are resolved as far as quoting goes; what
depends on a variable, a substitution or a brace is unknown, and the rules decide on that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 20_000
MAX_COMMANDS = 60


class Refusal(Exception):
    """Why a command is refused; `sure` when it certainly does what is forbidden."""

    def __init__(self, why: str, *, sure: bool = False) -> None:
        super().__init__(why)
        self.sure = sure


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command; `text` is None when it is only known while the command runs."""

    text: str | None
    glob: bool = False
    """Whether an unquoted wildcard is in it."""


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command."""

    words: tuple[Word, ...]
    assigned: tuple[str, ...] = ()
    """Names of variables set in front of it."""
    writes: tuple[Word, ...] = ()
    """Files that redirections write to."""
    stdin: str | None = None
    """The text of a here-document or here-string."""
    fed: bool = False
    """Whether a pipe or a file is its input."""
    looped: bool = False
    """Whether it may run more than once or later (loop, function)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds a node."""

    writes: tuple[Word, ...] = ()
    stdin: str | None = None
    fed: bool = False
    looped: bool = False
    more: tuple[Word, ...] = ()
    """Words of the command that stand behind a redirection."""


def simple_commands(text: str) -> Iterator[Simple | str]:
    """Every simple command in order; the strings `(` and `)` are the borders of a subshell."""
    _refuse_odd_characters(text)
    # Where bash and the parser read a text differently, or evaluate data as code.
    if re.search(r"(?<!\s)\\\n", text):
        raise Refusal("a line ends with a backslash inside a word")
    if re.search(r"\w\[[^\]\n]*(?:\$\(|`)", text):
        raise Refusal("an array index holds a substitution")
    if len(text) > MAX_LENGTH:
        raise Refusal(f"over {MAX_LENGTH:,} characters in one command")
    source = text.encode("utf-8", "surrogatepass")
    root = _parser().parse(source).root_node
    if root.has_error:
        raise Refusal("it could not be parsed for certain")
    count = 0
    for command in _walk(root, Context()):
        count += not isinstance(command, str)
        if count > MAX_COMMANDS:
            raise Refusal(f"over {MAX_COMMANDS} commands in one line")
        yield command


@cache
def _parser() -> Parser:
    import tree_sitter  # noqa: PLC0415 - only a shell command of an active run needs it
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _refuse_odd_characters(text: str) -> None:
    for character in text:
        category = unicodedata.category(character)
        steering = category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t"
        if steering or (category == "Zs" and character != " "):
            raise Refusal(f"it holds an invisible or control character (U+{ord(character):04X})")


_CONTAINERS = frozenset(
    {
        "program", "list", "pipeline", "compound_statement", "subshell", "if_statement",
        "elif_clause", "else_clause", "for_statement", "while_statement", "do_group",
        "case_statement", "case_item", "negated_command", "function_definition",
        "redirected_statement", "c_style_for_statement", "test_command", "variable_assignment",
        "variable_assignments", "declaration_command", "unset_command",
    }
)  # fmt: skip
_LOOPS = frozenset(
    {"for_statement", "while_statement", "c_style_for_statement", "function_definition"}
)
_QUIET = frozenset({"comment", "heredoc_start", "heredoc_end", "variable_name", "file_descriptor"})
_EXPRESSIONS = frozenset(
    {
        "word", "number", "string", "string_content", "raw_string", "ansi_c_string",
        "concatenation", "simple_expansion", "expansion", "arithmetic_expansion",
        "binary_expression", "unary_expression", "postfix_expression", "ternary_expression",
        "parenthesized_expression", "test_operator", "regex", "extglob_pattern",
        "special_variable_name", "array", "subscript", "command_name", "translated_string",
        "heredoc_body", "heredoc_content", "brace_expression",
    }
)  # fmt: skip


def _walk(node: Node, context: Context) -> Iterator[Simple | str]:
    kind = node.type
    if kind == "command":
        yield from _command(node, context)
    elif kind == "redirected_statement":
        yield from _redirected(node, context)
    elif kind == "pipeline":
        for number, child in enumerate(node.named_children):
            yield "("
            yield from _walk(child, _with(context, fed=number > 0 or context.fed))
            yield ")"
    elif kind in ("subshell", "command_substitution", "process_substitution"):
        yield "("
        yield from _children(node, _with(context, fed=kind == "process_substitution"))
        yield ")"
    elif kind == "declaration_command":
        yield from _declaration(node, context)
    elif kind == "variable_assignment":
        yield Simple((), (_assigned_name(node),), looped=context.looped)
        yield from _children(node, context)
    elif kind in _CONTAINERS:
        yield from _children(node, _with(context, looped=kind in _LOOPS))
    elif kind in _EXPRESSIONS:
        if kind == "expansion":
            _refuse_hidden_substitution(node)
        yield from _children(node, Context(looped=context.looped))
    elif kind not in _QUIET:
        raise Refusal(f"it uses `{kind}`, which is not decided here")


def _refuse_hidden_substitution(node: Node) -> None:
    """Refuse `${x:-`cmd`}` and `${x@P}`: the parser sees a word where bash runs a command."""
    source = (node.text or b"").decode("utf-8", "surrogatepass")
    if "`" in source or re.search(r"@[A-Za-z]\}$", source):
        raise Refusal("a parameter expansion may run a command")


def _children(node: Node, context: Context) -> Iterator[Simple | str]:
    for child in node.named_children:
        yield from _walk(child, context)


def _with(context: Context, *, fed: bool = False, looped: bool = False) -> Context:
    return replace(context, fed=fed or context.fed, looped=looped or context.looped)


def _command(node: Node, context: Context) -> Iterator[Simple | str]:
    words: list[Word] = []
    assigned: list[str] = []
    for child in node.named_children:
        if child.type == "variable_assignment":
            assigned.append(_assigned_name(child))
        elif child.type in ("file_redirect", "herestring_redirect"):
            context = _redirect(child, context)
        elif child.type not in _QUIET:
            words.append(_word(child))
        # A substitution inside a word is a command of its own.
        yield from _parts(child, context.looped)
    yield Simple(
        (*words, *context.more),
        tuple(assigned),
        context.writes,
        context.stdin,
        context.fed,
        context.looped,
    )


def _parts(node: Node, looped: bool) -> Iterator[Simple | str]:
    """The commands inside a word or a redirection."""
    inner = Context(looped=looped)
    if node.type in ("file_redirect", "herestring_redirect"):
        yield from _children(node, inner)
    else:
        yield from _walk(node, inner)


def _redirected(node: Node, context: Context) -> Iterator[Simple | str]:
    body = node.child_by_field_name("body")
    inner = context
    later: list[Node] = []
    for child in node.named_children:
        if child == body:
            continue
        if child.type == "heredoc_redirect":
            inner, following = _heredoc(child, inner)
            later += following
        else:
            inner = _redirect(child, inner)
            yield from _parts(child, context.looped)
    if inner.more and (body is None or body.type != "command"):
        raise Refusal("words follow a redirection where no command takes them")
    if body is not None:
        yield from _walk(body, inner)
    else:
        yield Simple((), (), inner.writes, None, inner.fed, context.looped)
    for child in later:
        # What follows a here-document's first word in the source: `| sh`, `&& rm x`.
        yield from _walk(child, Context(fed=True, looped=context.looped))


def _redirect(node: Node, context: Context) -> Context:
    """The context with one redirection in it. Words after its target are the command's own."""
    targets = [_word(child) for child in node.named_children if child.type != "file_descriptor"]
    operator = next((c.type for c in node.children if not c.is_named), "")
    target, more = (targets[0] if targets else Word(None)), tuple(targets[1:])
    context = replace(context, more=(*context.more, *more))
    if node.type == "herestring_redirect":
        return replace(context, stdin=target.text or "", fed=context.fed or target.text is None)
    if node.type != "file_redirect":
        raise Refusal(f"it uses `{node.type}`, which is not decided here")
    if operator in ("<", "<&", "<&-"):
        return replace(context, fed=True)
    copies = operator in (">&", ">&-") and (not targets or (target.text or "x").isdigit())
    return context if copies else replace(context, writes=(*context.writes, target))


def _heredoc(node: Node, context: Context) -> tuple[Context, list[Node]]:
    """The context with a here-document in it, and the commands that follow it on its line."""
    later: list[Node] = []
    quoted = False
    context = replace(context, stdin="")
    for child in node.named_children:
        source = (child.text or b"").decode("utf-8", "surrogatepass")
        if child.type == "heredoc_start":
            quoted = any(mark in source for mark in "'\"\\")
        elif child.type == "heredoc_body":
            if not quoted and "`" in source:
                raise Refusal("a here-document holds backticks")
            context = replace(context, stdin=source)
            later.append(child)
        elif child.type in ("file_redirect", "herestring_redirect"):
            context = _redirect(child, context)
            later += child.named_children
        elif child.type in _EXPRESSIONS:
            context = replace(context, more=(*context.more, _word(child)))
            later.append(child)
        elif child.type not in _QUIET:
            later.append(child)
    return context, later


def _declaration(node: Node, context: Context) -> Iterator[Simple | str]:
    names = [_assigned_name(c) for c in node.named_children if c.type == "variable_assignment"]
    keyword = node.children[0].type
    words = tuple(_word(c) for c in node.named_children if c.type not in ("variable_assignment",))
    yield Simple((Word(keyword), *words), tuple(names), looped=context.looped)
    yield from _children(node, Context(looped=context.looped))


def _assigned_name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return (name.text or b"").decode("utf-8", "replace").split("[", 1)[0] if name else "?"


def _word(node: Node) -> Word:
    """A word with its quoting taken away."""
    kind = node.type
    source = (node.text or b"").decode("utf-8", "surrogatepass")
    if kind == "command_name":
        return _word(node.named_children[0]) if node.named_children else Word(source)
    if kind in ("word", "number", "variable_name", "regex", "extglob_pattern"):
        return _plain(source)
    if kind == "raw_string":
        return Word(source[1:-1])
    if kind == "ansi_c_string":
        return Word(_ansi_c(source[2:-1]))
    if kind == "string":
        return _string(node, source)
    if kind == "concatenation":
        return _joined(node, source)
    return Word(None)


def _plain(source: str) -> Word:
    if re.search(r"(?<!\\)[{}]", source) and source != "{}":
        return Word(None)
    glob = re.search(r"(?<!\\)[*?\[]", source) is not None
    text = re.sub(r"\\(.)", r"\1", source.replace("\\\n", ""), flags=re.S)
    if source.startswith("~"):
        name, slash, rest = text.partition("/")
        if name != "~":
            return Word(None)
        text = str(Path.home()) + slash + rest
    return Word(text, glob)


def _string(node: Node, source: str) -> Word:
    if any(child.type != "string_content" for child in node.named_children):
        return Word(None)
    return Word(re.sub(r'\\([$`"\\\n])', lambda m: m[1].strip("\n"), source[1:-1]))


def _joined(node: Node, source: str) -> Word:
    # `{a,b}` reaches here in pieces; whatever a brace makes of its neighbours is unknown.
    parts = [_word(child) for child in node.children]
    unquoted = "".join(
        (c.text or b"").decode("utf-8", "replace")
        for c in node.children
        if c.type not in ("string", "raw_string", "ansi_c_string")
    )
    texts = [part.text for part in parts]
    if any(text is None for text in texts) or re.search(r"(?<!\\)[{}]", unquoted):
        return Word(None)
    return Word("".join(t for t in texts if t is not None), any(p.glob for p in parts))


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b",
            "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip
_ANSI_C = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)


def _ansi_c(body: str) -> str | None:
    """The value of `$'…'`."""

    def value(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3]
        if hexadecimal:
            return chr(int(hexadecimal, 16))
        if match[4]:
            return chr(int(match[4], 8) & 0xFF)
        if match[5]:
            return chr(ord(match[5].upper()) ^ 64)
        return _ESCAPES.get(match[6], "\\" + match[6])

    text = _ANSI_C.sub(value, body)
    return None if "\0" in text else text  # bash ends the word there
