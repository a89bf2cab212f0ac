"""Representations of groups and arrays as text, and as HTML for notebooks."""

from html import escape

from ._tree import node as node_of

#: Maximum number of lines of a tree.
LINES = 60


def _size(number):
    """A number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            return f"{number} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024


def _shape(array):
    """Dimension names and lengths, without reading the lengths of every frame."""
    about = array._info
    lengths = [f"{name}: {length}" for name, length in zip(about.dims, about.shape)]
    if array.frames is not None:
        lengths.insert(0, f"frame: {array.frames}")
    return ", ".join(lengths) if lengths else "scalar"


def _line(array):
    """Shape, type and units of an array."""
    units = array.units
    return f"({_shape(array)}) {array.type}" + (f" [{units}]" if units else "")


def tree(group):
    """The tree of a group, one line per node."""
    handle = group._handle
    if handle.file is None:
        return f"<spile.File {handle.name} (closed)>"
    paths, arrays, children = handle.tree
    head = f"/{group.path}"
    if group._number == 0:
        file = handle.open
        frames = "" if file.frames is None else f", {file.frames} frames"
        head = f"{handle.name} ({file.format}, {_size(file.nbytes)}{frames})"
    lines = [head]

    def walk(number, bars):
        below = children.get(number, ())
        for place, child in enumerate(below):
            if len(lines) > LINES:
                return
            last = place == len(below) - 1
            name = paths[child].rpartition("/")[2]
            text = f" {_line(node_of(handle, child))}" if arrays[child] else "/"
            lines.append(f"{bars}{'└── ' if last else '├── '}{name}{text}")
            walk(child, bars + ("    " if last else "│   "))

    walk(group._number, "")
    if len(lines) > LINES:
        left = len(paths) - LINES
        lines[LINES:] = [f"... ({left} more)"]
    return "\n".join(lines)


def array(array):
    """An array as text."""
    if array._handle.file is None:
        return "<spile.Array of a closed file>"
    return f"<spile.Array {array.path!r} {_line(array)}>"


_STYLE = (
    "<style>.spile{font-family:monospace;font-size:0.9em}.spile details{margin-left:1.2em}"
    ".spile .n{font-weight:bold}.spile .t{opacity:.7}.spile td{padding:0 .8em 0 0;"
    "text-align:left}</style>"
)


def _attributes(attrs):
    """Attributes as an HTML table."""
    rows = "".join(
        f"<tr><td class='t'>{escape(str(name))}</td><td>{escape(str(value)[:200])}</td></tr>"
        for name, value in list(attrs.items())[:30]
    )
    return f"<table>{rows}</table>" if rows else ""


def html(group):
    """A group as HTML."""
    handle = group._handle
    if handle.file is None:
        return f"<div class='spile'>{escape(tree(group))}</div>"
    paths, arrays, children = handle.tree
    shown = [0]

    def part(number):
        out = []
        for child in children.get(number, ()):
            shown[0] += 1
            if shown[0] > 500:
                out.append("<div class='t'>...</div>")
                break
            node = node_of(handle, child)
            name = escape(paths[child].rpartition("/")[2])
            text = escape(_line(node)) if arrays[child] else "/"
            inner = _attributes(node.attrs) + part(child)
            title = f"<span class='n'>{name}</span> <span class='t'>{text}</span>"
            out.append(
                f"<details><summary>{title}</summary>{inner}</details>"
                if inner
                else f"<div style='margin-left:1.2em'>{title}</div>"
            )
        return "".join(out)

    head = escape(tree(group).partition("\n")[0])
    body = _attributes(group.attrs) + part(group._number)
    return f"{_STYLE}<div class='spile'><div class='n'>{head}</div>{body}</div>"


def html_array(node):
    """An array as HTML."""
    if node._handle.file is None:
        return f"<div class='spile'>{escape(array(node))}</div>"
    head = (
        f"<span class='n'>{escape(node.path)}</span> <span class='t'>{escape(_line(node))}</span>"
    )
    return f"{_STYLE}<div class='spile'>{head}{_attributes(node.attrs)}</div>"
