"""Parses YAML text into a tree that knows where each value was written.

Scalars follow YAML 1.2: only `true` and `false` are booleans (`on` and `no` are text), `1e6` and
`10_000_000` are numbers. Repeated keys, tags and anything else that would be read as something
other than the user meant are problems.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import yaml

from game_rl.config.strict_model import Key

Scalar = str | int | float | bool | None

DEPTH_LIMIT = 32  # deeper than any config; far from Python's recursion limit
_SIZE_LIMIT = 20_000  # of `Node.size` with aliases expanded: stops "billion laughs"
_CHARACTERS_OF_A_VALUE = 1_000
_INTEGER_DIGITS = 20  # more make a float or text; Python itself refuses to print 4,300
_EXACT_INTEGERS = 2.0**53  # below this a float is the integer that was written

_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F][0-9a-fA-F_]*")
_OCTAL = re.compile(r"0o[0-7][0-7_]*")
_FLOAT = re.compile(r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# libyaml's, which is faster, where PyYAML was built with it, as its wheels are
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, order=True)
class Place:
    """Where a value was written: a line of the file, or an override."""

    order: int
    label: str

    @classmethod
    def line(cls, number: int) -> "Place":
        return cls(number, f"line {number}")


@dataclass(frozen=True)
class Node:
    """One value of a document.

    Attributes:
        value: a scalar, `{key: Node}` or `[Node]`.
        place: place of its key, or of the value itself if it has none.
        text: a scalar as it was written.
        quoted: whether a scalar was in quotes or a block, which makes it text in any case.
        size: number of values in it, itself included; a long text or key counts as several. A big
            game file has 5,000.
    """

    value: "Scalar | dict[str, Node] | list[Node]"
    place: Place
    text: str = ""
    quoted: bool = False
    size: int = 1

    def children(self) -> "dict[str, Node]":
        if isinstance(self.value, dict):
            return self.value
        if isinstance(self.value, list):
            return {str(index): node for index, node in enumerate(self.value)}
        return {}

    def plain(self) -> object:
        """Return the value as JSON has it."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def nearest(self, key: Key) -> "Node":
        """Return the node at the key, or the innermost one on the way to it."""
        child = self.children().get(key[0]) if key else None
        return child.nearest(key[1:]) if child else self

    def has(self, key: Key) -> bool:
        return not key or (key[0] in (nodes := self.children()) and nodes[key[0]].has(key[1:]))

    def with_value(self, key: Key, node: "Node") -> "Node":
        """Return a copy with the node at the key; missing mappings on the way are created."""
        if not key:
            return node
        inner = self.children().get(key[0], Node(None, node.place))
        changed = inner.with_value(key[1:], node)
        if isinstance(self.value, list):
            items = [changed if str(i) == key[0] else item for i, item in enumerate(self.value)]
            return replace(self, value=items)
        return replace(self, value=self.children() | {key[0]: changed})

    def without(self, key: Key) -> "Node":
        """Return a copy without the value at the key."""
        child = self.children().get(key[0])
        if child is None:
            return self
        if len(key) > 1:
            return self.with_value(key[:1], child.without(key[1:]))
        if isinstance(self.value, list):
            return replace(self, value=[item for item in self.value if item is not child])
        return replace(self, value={k: v for k, v in self.children().items() if k != key[0]})


@dataclass(frozen=True)
class LocatedProblem:
    """A problem with a key, and the place where that is written."""

    place: Place
    key: Key
    message: str


class DocumentError(Exception):
    """The text is not YAML, or exceeds a limit of ours."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.problem = LocatedProblem(place, (), message)


def parse_document(text: str, place: Place | None = None) -> tuple[Node, list[LocatedProblem]]:
    """Return the tree of a YAML text, and the problems found so far.

    Args:
        text: one YAML document.
        place: place of all its values, for text that is not a file's.

    Raises:
        DocumentError: no tree can be made of the text.
    """
    try:
        return _tree(text, _FAST_LOADER, place)
    except (yaml.YAMLError, ValueError, OverflowError):
        pass  # PyYAML's own parser words its errors as we know them
    try:
        return _tree(text, yaml.SafeLoader, place)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = place or Place.line(mark.line + 1 if mark else 1)
        column = f" at column {mark.column + 1}" if mark else ""
        raise DocumentError(where, _syntax_message(error.problem or "", column)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        message = f"the character U+{code:04X} cannot be in YAML; delete it"
        raise DocumentError(place or Place.line(line), message) from error
    except (ValueError, OverflowError) as error:  # PyYAML on "\UFFFFFFFF"
        message = f"an escape that is not a character ({error}); delete it"
        raise DocumentError(place or Place.line(1), message) from error


def _tree(
    text: str, loader: type[yaml.SafeLoader | yaml.CSafeLoader], place: Place | None
) -> tuple[Node, list[LocatedProblem]]:
    builder = _TreeBuilder(yaml.parse(text, Loader=loader), place)
    return builder.tree(), builder.problems


def resolve_plain(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", "").lower())
    digits = text.replace("_", "")
    is_short = len(digits) < _INTEGER_DIGITS
    if _HEXADECIMAL.fullmatch(text) and is_short:
        return int(digits, 16)
    if _OCTAL.fullmatch(text) and is_short:
        return int(digits, 8)
    if _INTEGER.fullmatch(text) and is_short:
        return int(digits)
    if _FLOAT.fullmatch(text):
        number = float(digits)
        exact = number.is_integer() and abs(number) < _EXACT_INTEGERS
        return int(number) if exact else number
    return text


def has_half_character(text: str) -> bool:
    """Whether it has a lone surrogate: an escape in YAML, or a byte of a command not in UTF-8."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _syntax_message(what: str, column: str) -> str:
    if r"'\t'" in what:
        return f"a tab{column}; YAML is indented with spaces, replace it"
    if "mapping values are not allowed" in what:
        what = "a second `:` in one line, or a wrong indentation; put text with `: ` in quotes"
    elif "could not find expected ':'" in what:
        what = "a key without `: ` after it, or a wrong indentation"
    return f"not YAML{column}: {what or 'it cannot be read'}"


class _TreeBuilder:
    """Builds the tree from PyYAML's events; its composer would forget tags and repeated keys."""

    def __init__(self, events: Iterator[yaml.Event], place: Place | None) -> None:
        self.problems: list[LocatedProblem] = []
        self._events = events
        self._place = place
        self._anchors: dict[str, Node] = {}
        self._size = 0

    def tree(self) -> Node:
        roots: list[Node] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if roots:
                    where = self._place_of(event)
                    raise DocumentError(where, "a second document (`---`); one file holds one")
                roots.append(self._node(next(self._events), ()))
        return roots[0] if roots else Node(None, self._place or Place.line(1))

    def _place_of(self, event: yaml.Event) -> Place:
        return self._place or Place.line(event.start_mark.line + 1 if event.start_mark else 1)

    def _node(self, event: yaml.Event, key: Key) -> Node:
        if len(key) > DEPTH_LIMIT:
            raise DocumentError(self._place_of(event), "nested too deep for a config; flatten it")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        tag = event.tag
        anchor = event.anchor
        if tag:
            self._problem(event, key, f"the tag {tag} is not supported; delete it")
        self._count(1, event)
        if isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, key)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, key)
        else:
            assert isinstance(event, yaml.ScalarEvent)
            node = self._scalar(event, key)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _problem(self, event: yaml.Event, key: Key, message: str) -> None:
        self.problems.append(LocatedProblem(self._place_of(event), key, message))

    def _alias(self, event: yaml.AliasEvent) -> Node:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            fix = f"write `&{event.anchor}` there, or put text that starts with * in quotes"
            message = f"`*{event.anchor}` refers to nothing complete before it; {fix}"
            raise DocumentError(self._place_of(event), message)
        self._count(node.size, event)
        return replace(node, place=self._place_of(event))

    def _count(self, values: int, event: yaml.Event) -> None:
        self._size += values
        if self._size > _SIZE_LIMIT:
            message = f"more than {_SIZE_LIMIT:,} values; this is not a config, name another file"
            raise DocumentError(self._place_of(event), message)

    def _scalar(self, event: yaml.ScalarEvent, key: Key) -> Node:
        text = event.value
        if has_half_character(text):
            self._problem(event, key, "half a character (a lone surrogate escape); delete it")
            text = ""
        value = resolve_plain(text) if event.implicit[0] else text
        more = len(text) // _CHARACTERS_OF_A_VALUE
        self._count(more, event)
        is_quoted = bool(event.style)
        return Node(value, self._place_of(event), text, quoted=is_quoted, size=1 + more)

    def _sequence(self, start: yaml.SequenceStartEvent, key: Key) -> Node:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*key, str(len(items)))))
        size = 1 + sum(item.size for item in items)
        return Node(items, self._place_of(start), size=size)

    def _mapping(self, start: yaml.MappingStartEvent, key: Key) -> Node:
        children: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise DocumentError(
                    self._place_of(event),
                    "a key must be a word; put text that starts with {, [, * or & in quotes",
                )
            name = self._scalar(event, key).text
            if name in children:
                first = children[name].place.label
                self._problem(event, (*key, name), f"written twice, first in {first}; keep one")
            node = self._node(next(self._events), (*key, name))
            children[name] = replace(node, place=self._place_of(event))
        size = 1 + sum(
            child.size + len(name) // _CHARACTERS_OF_A_VALUE for name, child in children.items()
        )
        return Node(children, self._place_of(start), size=size)
