"""SDF datasets as trees, with the names of sdf-xarray."""

import xarray as xr


def datasets(ds):
    """The datasets of a tree, by path.

    The path of a variable is its name in the file with underscores for spaces. If other variables are
    below it, it is called ``All``: ``Derived/Number_Density/All``. The attribute
    ``flat_structure_name`` is its name in `ds`.
    """
    paths = {}
    for name, variable in ds.data_vars.items():
        paths[name] = str(variable.attrs.get("full_name", name)).replace(" ", "_").strip("/")
    groups = {path[:k] for path in paths.values() for k, c in enumerate(path) if c == "/"}
    nodes = {"/": ({}, {})}
    for name, path in paths.items():
        place, _, leaf = (f"{path}/All" if path in groups else path).rpartition("/")
        variables, coords = nodes.setdefault(f"/{place}", ({}, {}))
        while leaf in variables or f"{place}/{leaf}".strip("/") in groups:
            leaf += "_"
        variable = ds.variables[name].copy(deep=False)
        variable.attrs = {**variable.attrs, "flat_structure_name": name}
        variables[leaf] = variable
        coords.update((n, c.variable) for n, c in ds[name].coords.items())
    found = {}
    for place, (variables, coords) in nodes.items():
        hidden = {n for n in coords if n in variables or f"{place}/{n}".strip("/") in groups}
        coords = {n: c for n, c in coords.items() if n not in hidden}
        found[place] = xr.Dataset(variables, coords)
    found["/"].attrs = ds.attrs
    return found


def datatree(ds):
    """`ds` as a tree."""
    tree = xr.DataTree.from_dict(datasets(ds))
    tree.set_close(ds.close)
    return tree
