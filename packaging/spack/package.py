from spack.package import *


class Spile(CargoPackage):
    """Opens, converts, compares and repairs simulation and instrument files: scda, SDF (EPOCH), GSD (HOOMD-blue),
    IOTK (Quantum ESPRESSO), TAF, files of oscilloscopes, HDF5, NetCDF, Zarr and others."""

    homepage = "https://example.org/spile"
    url = "https://example.org/spile/spile-0.1.0.tar.gz"

    license("Apache-2.0 OR MIT")

    version("0.1.0", sha256="0" * 64)

    variant("c", default=True, description="Install the C and Fortran interface")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("gmake", type="build", when="+c")

    @property
    def build_directory(self):
        return "crates/cli"

    @run_after("install")
    def install_library(self):
        if self.spec.satisfies("+c"):
            cargo = which("cargo", required=True)
            cargo("build", "--release", "--package", "spile-c")
            make("-C", "bindings/c", "install", f"PREFIX={self.prefix}")
