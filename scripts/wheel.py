#!/usr/bin/env python3
"""Writes the wheel of the package in python/ (PEP 427) into a directory; needs no network.

The same sources give the same bytes. Usage: wheel.py DIRECTORY
"""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "python"
TAG = "py3-none-any"
METADATA = """\
Metadata-Version: 2.1
Name: roost
Version: {version}
Summary: Jobs and functions on the pool of the batch system Roost
License: Apache-2.0
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""


def main(directory):
    text = (SOURCE / "roost/__init__.py").read_text()
    version = re.search(r'^__version__ = "(.*)"$', text, re.M).group(1)
    info = "roost-%s.dist-info" % version
    readme = (SOURCE / "README.md").read_text()
    files = {str(p.relative_to(SOURCE)): p.read_bytes() for p in
             [SOURCE / "_roost_worker.py", *sorted(SOURCE.glob("roost/**/*"))]
             if p.is_file() and "__pycache__" not in p.parts}
    files[info + "/METADATA"] = METADATA.format(version=version, readme=readme).encode()
    files[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: roost\nRoot-Is-Purelib: true\nTag: %s\n" % TAG).encode()
    files[info + "/top_level.txt"] = b"_roost_worker\nroost\n"
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    target = pathlib.Path(directory) / ("roost-%s-%s.whl" % (version, TAG))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(target)


if __name__ == "__main__":
    main(sys.argv[1])
