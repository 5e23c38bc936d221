# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Sdm(Package):
    """A debugger for programs that run as many processes at once: gdb's commands go to any set of
    them, and the answers come back merged."""

    # Put the address of the repository here before the recipe goes into a Spack repository.
    git = "file:///path/to/sdm"

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("static", default=False, description="Link statically, against musl")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("gdb@10:", type="run")

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        env.set("CARGO_BUILD_JOBS", str(make_jobs))

    def install(self, spec, prefix):
        options = ["--static"] if spec.satisfies("+static") else []
        Executable(join_path(self.stage.source_path, "scripts", "install"))(prefix, *options)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_emulated_session(self):
        sdm = Executable(self.prefix.bin.sdm)
        sdm("emulate", "-n", "4", "-c", "stacks")
