"""What the scripts of this folder share: executables by their usual names, packages of Python, links, PTF, and the count of
what passed with the reason of each exception."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSIDE = "MILLRACE_CLIENTS_INSIDE"
# The messages in the package p4runtime are made for protobuf 3, and tests of other projects for addresses that are texts,
# which they are up to scapy 2.5.
PTF = ["ptf==0.12.0", "scapy==2.5.0", "p4runtime==1.4.1", "p4runtime-shell==0.0.6", "protobuf<3.21",
       "googleapis-common-protos<1.60", "grpcio", "setuptools<81"]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "millrace"
NAMES = ("p4c", "p4c-bm2-ss", "simple_switch", "simple_switch_grpc", "simple_switch_CLI")


def arguments(parser, tests=None, more=(), first="CHECKOUT"):
    """Adds what all scripts take, perhaps more checkouts and names of tests too, and reads the command line."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = lambda text: Path(text).absolute()  # noqa: E731
    parser.add_argument("checkout", type=path, metavar=first)
    for name in more:
        parser.add_argument(name.lower(), type=path, metavar=name)
    if tests:
        parser.add_argument("tests", nargs="*", metavar=tests)
    parser.add_argument("--bin", type=path, default=target / "release", help="the folder of the executables")
    parser.add_argument("--venv", type=path, help="where the packages of Python are, or go")
    parser.add_argument("--verbose", action="store_true", help="shows what the programs say")
    args = parser.parse_intermixed_args()
    if not (args.bin / "millrace").is_file():
        sys.exit(f"{args.bin / 'millrace'} is missing: `cargo build --release` makes it")
    for checkout in (args.checkout, *(getattr(args, name.lower()) for name in more)):
        if not checkout.is_dir():
            sys.exit(f"{checkout} is no checkout")
    return args


def python(args, name, packages):
    """The folder of an environment with these packages."""
    folder = args.venv or CACHE / name
    have = folder / "millrace-packages"
    if not have.exists() or have.read_text().split("\n") != packages:
        print(f"== installing {' '.join(packages)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/python3", "-m", "pip", "install", "-q", *packages], check=True)
        have.write_text("\n".join(packages))
    return folder


def within(venv):
    """Goes on with the Python of an environment."""
    if Path(sys.prefix).resolve() != venv.resolve():
        os.execv(venv / "bin/python3", [str(venv / "bin/python3"), *sys.argv])


def apart():
    """Goes on in namespaces of its own, which end with the script."""
    if os.environ.get(INSIDE):
        subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if os.geteuid() != 0:
        print("it needs root to make interfaces\n0 passed of 0")
        sys.exit(0)
    missing = [tool for tool in ("ip", "unshare", "mount") if not shutil.which(tool)]
    if missing:
        sys.exit(f"{' and '.join(missing)} missing")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])


def environment(args, folder, venv):
    """Our executables by their usual names first, then Python with its packages. Who is root needs no sudo, and `ifconfig` is
    only asked which interfaces there are."""
    tools = folder / "tools"
    tools.mkdir()
    for name in NAMES:
        (tools / name).symlink_to(args.bin / name)
    scripts = {"sudo": 'exec env "$@"', "ifconfig": "for link in /sys/class/net/*; do echo ${link##*/}:; done"}
    for name, script in scripts.items():
        if name == "sudo" or not shutil.which(name):
            tool(tools, name, script)
    path = [tools, venv / "bin", *os.environ["PATH"].split(":"), "/usr/sbin", "/sbin"]
    return dict(os.environ, PATH=":".join(map(str, path)), PYTHONUNBUFFERED="1", VIRTUAL_ENV=str(venv))


def tool(tools, name, script):
    """Makes an executable of the shell."""
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def veths(count, name="veth"):
    """Links as the scripts of bmv2 make them: veth0 to veth1, veth2 to veth3. The kernel says nothing on them."""
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    for at in range(0, 2 * count, 2):
        ends = f"{name}{at}", f"{name}{at + 1}"
        subprocess.run(["ip", "link", "add", ends[0], "mtu", "9500", "type", "veth", "peer", "name", ends[1], "mtu", "9500"], check=True)
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)


# Where scripts of Python 2 have bytes in a text.
BYTES = [
    (r"with open\(bmv2_json_path\) as f", "with open(bmv2_json_path, 'rb') as f"),
    (r"subprocess.check_output\(\['ifconfig'\]\)", "subprocess.check_output(['ifconfig'], text=True)"),
    (r"^(\s*(?:return|\w+ =) )(.*)\.decode\('hex'\)$", r"\1bytes.fromhex(\2)"),
    (r"s\.encode\('hex'\) for s in", "'%02x' % s for s in"),
    (r"\.encode\('hex'\)", ".hex()"),
    (r"\"\"\.join\(chr\(b\) for b in bytes_\)", "bytes(bytes_)"),
    (r"\.decode\(\"utf-8\"\)", ""),
    (r"str\((\w+), \"utf-8\"\)", r"str(\1)"),
    (r"\bstr\((\w*pkt\w*)\)", r"bytes(\1)"),
]


class Switch:
    """A switch that runs until it is closed."""

    def __init__(self, command, log, wanted, env=None):
        self.log = open(log, "w+")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=subprocess.STDOUT, env=env)
        deadline = time.monotonic() + 30
        while wanted not in Path(log).read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"the switch does not start, status {self.process.poll()}: {Path(log).read_text()}")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def python3(venv, folder):
    """Makes scripts of Python 2 such of Python 3: their syntax, and files and texts that are bytes."""
    files = sorted(folder.rglob("*.py"))
    subprocess.run([venv / "bin/python3", "-W", "ignore", "-m", "fissix", "-x", "import", "-w", "-n", *files], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for file in files:
        text = file.read_text()
        for old, new in BYTES:
            text = re.sub(old, new, text, flags=re.MULTILINE)
        file.write_text(text)


class Results:
    """Tests by name: none for those that passed, else the reason. Exceptions are names with the reason why they cannot pass, which
    is told in place of what they said."""

    def __init__(self, exceptions=None):
        self.tests = {}
        self.skipped = {}
        self.exceptions = exceptions or {}

    def add(self, name, reason=None):
        self.tests[name] = reason
        print(f"{'ok' if reason is None else 'not ok'} - {name}", flush=True)

    def skip(self, name, reason):
        """A test that says itself that it is not for here; it counts neither way."""
        self.skipped[name] = reason
        print(f"skipped - {name}", flush=True)

    def ptf(self, said):
        """Takes what PTF said: a line for each test, and what went wrong in blocks of its own."""
        # A test may say something itself in between.
        parts = re.split(r"^(\S+\.\S+) \.\.\. ", said.split("\n=====")[0], flags=re.MULTILINE)
        for name, rest in zip(parts[1::2], parts[2::2]):
            result = re.search(r"(?:^|\s)(ok|FAIL|ERROR|skipped .*)$", rest, re.MULTILINE)
            passed = result and result[1] == "ok"
            self.add(name, None if passed else ptf_reason(said, name, result[1] if result else "no result"))
        if not self.tests:
            self.add("PTF", said[-3000:])

    def end(self):
        """The last lines, and the exit status: 1 if a test failed that is no exception."""
        bad = {name: reason for name, reason in self.tests.items() if reason is not None}
        for name, reason in bad.items():
            print(f"-- {name}: {self.exceptions.get(name, reason).strip()}")
        for name, reason in self.skipped.items():
            print(f"-- {name} is skipped: {reason.strip()}")
        print(f"{len(self.tests) - len(bad)} passed of {len(self.tests)}")
        return any(name not in self.exceptions for name in bad)


def ptf_reason(said, name, result):
    block = re.search(rf"^(?:FAIL|ERROR): {re.escape(name)}\n-+\n(.*?)\n(?:-|=){{20,}}", said, re.MULTILINE | re.DOTALL)
    lines = block[1].strip().splitlines() if block else []
    raised = [line for line in lines if re.match(r"\w[\w.]*(Error|Exception|Failure|Rendezvous)?: ", line)]
    return (raised or lines or [result])[-1]


def run(command, env, cwd, seconds, verbose=False):
    """Runs a command; its status, and all that it said."""
    try:
        done = subprocess.run([str(word) for word in command], env=env, cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds)
        status, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, said = -1, (late.stdout or b"").decode(errors="replace") + f"\nit takes more than {seconds} s"
    if verbose:
        print(said)
    return status, said
