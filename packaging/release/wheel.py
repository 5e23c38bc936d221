#!/usr/bin/env python3
"""Packs the programs of a folder into a wheel, which `pip install` puts on PATH. It holds no Python.

usage: wheel.py PREFIX VERSION MACHINE FILE-FOLDER
Nothing in it depends on the time or on who makes it. It is written here and not by maturin, which makes a wheel of one
crate's programs, and builds them by itself: what is packed is what was tested.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

NAME = "sdm_debugger"
PROGRAMS = ["sdm", "sdm-master", "sdm-server", "sdm-agent", "sdm-rm", "sdm-pmix"]


def main():
    prefix, version, machine, folder = sys.argv[1:]
    # Static programs run with any C library; sdm-pmix needs glibc 2.17 where it is used.
    tag = f"py3-none-manylinux2014_{machine}.musllinux_1_1_{machine}"
    info = f"{NAME}-{version}.dist-info"
    data = f"{NAME}-{version}.data"
    files = {}
    for program in PROGRAMS:
        path = os.path.join(prefix, "bin", program)
        if os.path.exists(path):
            with open(path, "rb") as file:
                files[f"{data}/scripts/{program}"] = (file.read(), 0o755)
    share = os.path.join(prefix, "share")
    for parent, folders, names in os.walk(share):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                inside = os.path.relpath(path, prefix)
                files[f"{data}/data/{inside}"] = (file.read(), 0o644)
    metadata = (
        "Metadata-Version: 2.1\n"
        f"Name: {NAME.replace('_', '-')}\nVersion: {version}\n"
        "Summary: A debugger for programs that run as many processes at once\n"
        "License: MIT OR Apache-2.0\n"
        "Requires-Python: >=3.6\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Topic :: Software Development :: Debuggers\n"
    )
    tags = "".join(f"Tag: py3-none-{it}\n" for it in tag.removeprefix("py3-none-").split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: sdm release\nRoot-Is-Purelib: false\n{tags}"
    files[f"{info}/METADATA"] = (metadata.encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    record = ""
    for name, (contents, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(contents)}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = (record.encode(), 0o644)
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    path = os.path.join(folder, f"{NAME}-{version}-{tag}.whl")
    level = int(os.environ.get("SDM_RELEASE_LEVEL", "9"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as made:
        for name, (contents, mode) in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, contents)
    print(path)


main()
