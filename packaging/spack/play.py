#!/usr/bin/env python3
"""Plays the recipe of Spack with stand-ins for what it takes from Spack: its directives say what this project has, and its
steps call what is there. It does not replace Spack, which could not be had where this was written.

usage: play.py     (exits with 1 and the reason where something is wrong)
"""

import os
import re
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
directives, calls, environment = [], [], {}


def directive(name):
    return lambda *args, **named: directives.append((name, args, named))


class Executable:
    def __init__(self, path):
        self.path = str(path)

    def __call__(self, *args):
        calls.append([self.path, *map(str, args)])


class Spec:
    def __init__(self, static):
        self.static = static

    def satisfies(self, what):
        assert what == "+static", what
        return self.static


class Environment:
    def set(self, name, value):
        environment[name] = value


class Prefix(str):
    @property
    def bin(self):
        return type("Bin", (), {"sdm": os.path.join(self, "bin/sdm")})


def module(name, **contents):
    made = types.ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made


def stand_ins():
    for name in ["spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack"]:
        module(name)
    module("spack_repo.builtin.build_systems.generic", Package=type("Package", (), {}))
    names = ["license", "version", "variant", "depends_on"]
    module(
        "spack.package",
        Executable=Executable,
        join_path=os.path.join,
        make_jobs=4,
        run_after=lambda step: lambda function: function,
        on_package_attributes=lambda **_: lambda function: function,
        **{name: directive(name) for name in names},
    )


def agrees(manifest):
    """What the directives say against Cargo.toml."""
    rust = re.search(r'^rust-version = "(.*)"$', manifest, re.M).group(1)
    needs = [args[0] for name, args, _ in directives if name == "depends_on"]
    assert f"rust@{rust}:" in needs, f"Cargo.toml wants Rust {rust}: {needs}"
    licenses = [args[0] for name, args, _ in directives if name == "license"]
    ours = re.search(r'^license = "(.*)"$', manifest, re.M).group(1)
    assert sorted(licenses[0].split(" OR ")) == sorted(ours.split(" OR ")), licenses
    with open(os.path.join(ROOT, "sdm-doctor/src/gdb.rs"), encoding="utf-8") as source:
        oldest = re.search(r"OLDEST\w*: [^=]*= \D*(\d+)", source.read())
    assert oldest and f"gdb@{oldest.group(1)}:" in needs, f"SDM wants gdb {oldest and oldest.group(1)}: {needs}"


def main():
    stand_ins()
    recipe = os.path.join(os.path.dirname(os.path.abspath(__file__)), "package.py")
    scope = {"__name__": "sdm_recipe"}
    with open(recipe, encoding="utf-8") as file:
        exec(compile(file.read(), recipe, "exec"), scope)
    with open(os.path.join(ROOT, "Cargo.toml"), encoding="utf-8") as file:
        agrees(file.read())
    package = scope["Sdm"]()
    package.stage = type("Stage", (), {"path": "/stage", "source_path": ROOT})
    package.prefix = Prefix("/prefix")
    package.setup_build_environment(Environment())
    assert environment["CARGO_HOME"] == "/stage/cargo", environment
    for static in [False, True]:
        package.install(Spec(static), package.prefix)
    package.check_emulated_session()
    install = os.path.join(ROOT, "scripts/install")
    assert os.access(install, os.X_OK), install
    expected = [[install, "/prefix"], [install, "/prefix", "--static"]]
    assert calls[:2] == expected, calls
    assert calls[2] == ["/prefix/bin/sdm", "emulate", "-n", "4", "-c", "stacks"], calls
    print("the recipe does what it should")


main()
