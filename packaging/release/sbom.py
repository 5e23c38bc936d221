#!/usr/bin/env python3
"""Writes a software bill of materials (CycloneDX 1.5, JSON) of what cargo puts into the programs.

usage: sbom.py TARGET FILE     (the output of `cargo metadata --filter-platform TARGET` is read on standard input)
"""

import json
import sys


def reached(metadata, programs):
    """Packages that the programs are linked with: build scripts' and tests' own are not among them."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [package["id"] for package in metadata["packages"] if package["name"] in programs]
    seen = {}
    while todo:
        package = todo.pop()
        if package in seen:
            continue
        of = [
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        seen[package] = of
        todo.extend(of)
    return seen


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    kind = "library" if package["source"] else "application"
    made = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package.get("license"):
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return made


def locked():
    """The checksums of Cargo.lock, by name and version."""
    found, name, version = {}, None, None
    with open("Cargo.lock", encoding="utf-8") as lock:
        for line in lock:
            key, _, value = line.strip().partition(" = ")
            value = value.strip('"')
            if key == "name":
                name = value
            elif key == "version":
                version = value
            elif key == "checksum":
                found[(name, version)] = value
    return found


def main():
    target, path = sys.argv[1:]
    metadata = json.load(sys.stdin)
    programs = ["sdm", "sdm-master", "sdm-server", "sdm-agent", "sdm-rm", "sdm-foreign"]
    packages = {package["id"]: package for package in metadata["packages"]}
    graph = reached(metadata, programs)
    checksums = locked()
    main_package = next(it for it in metadata["packages"] if it["name"] == "sdm")
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component(main_package, checksums),
            "properties": [{"name": "target", "value": target}],
        },
        "components": sorted(
            (component(packages[it], checksums) for it in graph if packages[it] is not main_package),
            key=lambda it: it["bom-ref"],
        ),
        "dependencies": sorted(
            (
                {
                    "ref": reference(packages[it]),
                    "dependsOn": sorted({reference(packages[of]) for of in graph[it]}),
                }
                for it in graph
            ),
            key=lambda it: it["ref"],
        ),
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(bill, out, indent=1)
        out.write("\n")
    print(f"{path}: {len(bill['components'])} components")


main()
