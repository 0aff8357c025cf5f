"""What builds for an Arm processor on this machine, and runs what was built."""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import rust_target


@dataclass(frozen=True)
class Target:
    """A processor, and what builds for it."""

    name: str
    rust: str
    gcc: str
    packages: tuple
    qemu: str
    engines: tuple

    def runner(self):
        """The command that runs its programs here."""
        if platform.machine() == self.name:
            return []
        bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        return [*bare, self.qemu, "-L", f"/usr/{self.gcc}"]

    def environment(self):
        of_cargo = f"CARGO_TARGET_{self.rust.upper().replace('-', '_')}"
        own = {} if platform.machine() == self.name else {f"{of_cargo}_LINKER": f"{self.gcc}-gcc"}
        own[f"{of_cargo}_RUNNER"] = " ".join(self.runner())
        return {**{name: value for name, value in own.items() if value}, **os.environ}


TARGETS = {
    target.name: target
    for target in [
        Target("aarch64", "aarch64-unknown-linux-gnu", "aarch64-linux-gnu", ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
               "qemu-aarch64", ("interp", "jit")),
        Target("armv7", "armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf",
               ("gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"), "qemu-arm", ("interp",)),
    ]
}


def prepare(target):
    """Has the tools for a target be here; else says what is missing."""
    if target.runner():
        needed = {target.qemu: ("qemu-user",), f"{target.gcc}-gcc": target.packages}
        missing = [package for tool, packages in needed.items() if not shutil.which(tool) for package in packages]
        if missing and os.geteuid() == 0 and shutil.which("apt-get"):
            print(f"== installing {' '.join(missing)}", flush=True)
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for words in ["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]:
                subprocess.run(["apt-get", *words], env=environment, stdout=subprocess.DEVNULL)
        missing = [tool for tool in needed if not shutil.which(tool)]
        if missing:
            return f"{' and '.join(missing)} missing"
    return rust_target.add(target.rust)
