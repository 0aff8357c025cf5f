"""Rust's standard library for another processor, for tests that build for one."""

import shutil
import subprocess
from pathlib import Path


def add(target):
    """Has it be here; else says what is missing."""
    folder = subprocess.run(["rustc", "--print", "target-libdir", "--target", target], capture_output=True, text=True)
    if list(Path(folder.stdout.strip() or "/nowhere").glob("libstd-*")):
        return None
    if not shutil.which("rustup"):
        return f"Rust has no standard library for {target}, and there is no rustup"
    if subprocess.run(["rustup", "target", "add", target]).returncode:
        return f"`rustup target add {target}` failed"
    return None
