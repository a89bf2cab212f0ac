"""NetCDF-4 by meaning: xarray shows the variables of a converted file with names, units and coordinates."""

import xarray as xr
from support.meaning import check

if __name__ == "__main__":
    check("x.nc", xr.open_dataset)
