"""Writes a wheel that carries the program: python3 wheel.py PROGRAM VERSION README DIRECTORY. Prints its path."""

import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

SUMMARY = "An HTTP server, a load generator, and tools that compare servers"


def record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main(program: str, version: str, readme: str, directory: str) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    about = f"bolide-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: bolide\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License: MIT OR Apache-2.0\nDescription-Content-Type: text/markdown\n\n"
        + pathlib.Path(readme).read_text("utf-8")
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: bolide\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = [
        (f"bolide-{version}.data/scripts/bolide", pathlib.Path(program).read_bytes(), 0o755),
        (f"{about}/METADATA", metadata.encode(), 0o644),
        (f"{about}/WHEEL", wheel.encode(), 0o644),
    ]
    lines = "".join(record(name, content) for name, content, _ in files)
    files.append((f"{about}/RECORD", f"{lines}{about}/RECORD,,\n".encode(), 0o644))
    path = pathlib.Path(directory) / f"bolide-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            # One time for all: the same program makes the same file.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(path)


main(*sys.argv[1:])
