"""Input decks of EPOCH.

A deck consists of blocks ``begin:NAME`` ... ``end:NAME`` with lines ``key = value``; some keys, such
as ``include_species``, are followed by a colon. ``#`` starts a comment, and a backslash at the end of
a line continues it.
"""

import functools
import json
import os
import pathlib
import re
import warnings

#: Blocks that EPOCH reads as one block if there are several.
_MERGED = {
    "boundaries",
    "collisions",
    "constant",
    "control",
    "fields",
    "output_global",
    "qed",
    "stencil",
    "window",
}

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

#: Several values in parentheses, such as the limits of a distribution function.
_TUPLE = re.compile(r"\(([^(),]+(?:,[^(),]+)+)\)")


class DeckError(ValueError):
    """An input deck that cannot be parsed; the message has the number of the line."""


class Deck(str):
    """A parsed input deck: a read-only mapping of block names to blocks, and its own JSON text.

    It is a string, so that datasets with it as an attribute can be written as NetCDF and Zarr; a
    deck is restored from that text by ``Deck(text)``. Values are numbers, tuples of numbers, booleans,
    texts (expressions are not evaluated) or, for repeated keys, lists. Blocks with a name are a mapping
    of names to blocks; other repeated blocks are a list.

    >>> deck = spile.sdf.Deck.parse("begin:species\\n name = electron\\n charge = -1\\nend:species")
    >>> deck["species"]["electron"]["charge"]
    -1
    """

    __slots__ = ("_parsed",)

    @classmethod
    def parse(cls, text: str) -> "Deck":
        """Parses the text of an input deck. Raises `DeckError`."""
        return cls(json.dumps(_blocks(text)))

    @property
    def blocks(self) -> dict:
        """The blocks as a new dictionary of dictionaries."""
        return _with_tuples(json.loads(str.__str__(self) or "{}"))

    @property
    def _mapping(self) -> dict:
        if not hasattr(self, "_parsed"):
            self._parsed = self.blocks
        return self._parsed

    def __getitem__(self, name):
        return self._mapping[name]

    def __contains__(self, name):
        return name in self._mapping

    def __iter__(self):
        return iter(self._mapping)

    def __len__(self):
        return len(self._mapping)

    def __eq__(self, other):
        return self._mapping == other if isinstance(other, dict) else str.__eq__(self, other)

    def __hash__(self):
        return str.__hash__(self)

    def __repr__(self):
        return repr(self._mapping)

    def get(self, name, default=None):
        """The block `name`, or `default`."""
        return self._mapping.get(name, default)

    def keys(self):
        """Names of the blocks."""
        return self._mapping.keys()

    def values(self):
        """The blocks."""
        return self._mapping.values()

    def items(self):
        """Names and blocks."""
        return self._mapping.items()


def load_deck(folder, deck_path=None):
    """The input deck of a run: `deck_path`, relative to `folder`, or ``input.deck`` in `folder`.

    Returns `None`, if there is no ``input.deck``, and with a warning, if the deck cannot be parsed. A
    missing `deck_path` raises `FileNotFoundError`.
    """
    path = pathlib.Path(folder, "input.deck" if deck_path is None else deck_path)
    try:
        about = os.stat(path)
    except OSError as error:
        if deck_path is None:
            return None
        raise FileNotFoundError(f"{path}: no such input deck") from error
    try:
        return _loaded(os.fspath(path), about.st_mtime_ns, about.st_size)
    except (DeckError, OSError) as error:
        warnings.warn(f"{path}: the input deck was not read: {error}", stacklevel=2)
        return None


@functools.lru_cache(maxsize=16)
def _loaded(path, _changed, _size):
    """The deck at `path`. The files of a run share one deck."""
    return Deck.parse(pathlib.Path(path).read_text(encoding="utf-8", errors="replace"))


def _blocks(text):
    """The blocks of a deck, by name."""
    found, name, block = {}, None, {}
    for number, line in _lines(text):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if colon and key.lower() == "begin":
            if name is not None:
                raise DeckError(f"line {number}: expected end:{name}, found {line}")
            name, block = value.lower(), {}
        elif colon and key.lower() == "end":
            if value.lower() != name:
                raise DeckError(f"line {number}: expected end:{name}, found {line}")
            values = {key: v[0] if len(v) == 1 else v for key, v in block.items()}
            found.setdefault(name, []).append(values)
            name = None
        elif name is not None:
            if "=" in line and ":" not in line.partition("=")[0]:
                key, _, value = (part.strip() for part in line.partition("="))
            elif not colon:
                raise DeckError(f"line {number}: expected key = value, found {line}")
            block.setdefault(key, []).append(_value(value))
        # Between blocks EPOCH reads only `import:FILE`.
    if name is not None:
        raise DeckError(f"expected end:{name}, found the end of the deck")
    return {name: _joined(name, blocks) for name, blocks in found.items()}


def _joined(name, blocks):
    """Several blocks of one name as one value."""
    if all("name" in block for block in blocks):
        # EPOCH continues the block of a species if another has its name.
        named = {}
        for block in blocks:
            named.setdefault(str(block["name"]), {}).update(block)
        return named
    if len(blocks) == 1:
        return blocks[0]
    if name in _MERGED:
        return {key: value for block in blocks for key, value in block.items()}
    return blocks


def _lines(text):
    """Numbered lines without comments, with continued lines joined."""
    whole = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        whole = f"{whole} {line}" if whole else line
        if whole.endswith("\\"):
            whole = whole[:-1].rstrip()
            continue
        if whole:
            yield number, whole
        whole = ""
    if whole:
        yield len(text.splitlines()), whole


def _with_tuples(value):
    """`value` with texts such as ``(0, 1e-15)`` as tuples of numbers. JSON keeps them as in the deck."""
    if isinstance(value, dict):
        return {key: _with_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_tuples(item) for item in value]
    if isinstance(value, str) and (found := _TUPLE.fullmatch(value)):
        numbers = tuple(_value(part.strip()) for part in found[1].split(","))
        if not any(isinstance(number, (str, bool)) for number in numbers):
            return numbers
    return value


def _value(text):
    """A number, a boolean, or the text itself."""
    if text in ("T", "F"):
        return text == "T"
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
