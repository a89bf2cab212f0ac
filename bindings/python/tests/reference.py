"""Prints the reference of the package as Markdown: signatures and docstrings of all public names."""

import inspect
import sys

MODULES = ["spile", "spile.sdf", "spile.taf", "spile.scda", "spile.fortran", "spile.gsd.fl"]
MODULES += ["spile.gsd.hoomd", "spile.errors"]


def described(name, item, level):
    """A heading, the signature and the docstring of a function or class, with its public members."""
    lines = [f"{'#' * level} {name}", ""]
    try:
        lines += ["```python", f"{name}{inspect.signature(item)}", "```", ""]
    except (TypeError, ValueError):
        pass
    text = inspect.getdoc(item)
    if text:
        lines += ["```text", text, "```", ""]
    if inspect.isclass(item):
        for inner, member in vars(item).items():
            known = inspect.isfunction(member) or isinstance(member, (property, staticmethod))
            if not inner.startswith("_") and known and inspect.getdoc(member):
                function = member.fget if isinstance(member, property) else member
                signature = "" if isinstance(member, property) else inspect.signature(function)
                lines += [f"`{inner}{signature}`", "", "```text", inspect.getdoc(member), "```", ""]
    return lines


def main():
    out = ["# Functions of Python", ""]
    for module_name in MODULES:
        __import__(module_name)
        module = sys.modules[module_name]
        out += [f"## {module_name}", "", (inspect.getdoc(module) or "").split("\n")[0], ""]
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            item = getattr(module, name)
            if name.startswith("_") or not (inspect.isfunction(item) or inspect.isclass(item)):
                continue
            out += described(name, item, 3)
    print("\n".join(out))


if __name__ == "__main__":
    main()
