#!/usr/bin/env python3
"""What the documents claim about the repository: links lead somewhere, the tests that docs/semantics.md names exist,
docs/dependencies.md lists the dependencies that crates use and docs/errors.md the codes that findings have, no more and no
fewer; crates depend on each other only as ARCHITECTURE.md says; every metric that alerts and dashboards in packaging/ use is in docs/observability.md. (That the examples there are right is for `tests/errors/check`.) Exits 1 and says what is wrong."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where docs/semantics.md says that tests are: files that hold a function of the name, or folders that hold a file of it.
FUNCTIONS = {
    "language": "crates/dataplane/tests/language.rs",
    "forwarding": "crates/dataplane/tests/forwarding.rs",
    "worker": "crates/dataplane/tests/worker.rs",
    "budgets": "crates/dataplane/tests/budgets.rs",
    "quotas": "crates/dataplane/tests/quotas.rs",
    "budget": "crates/dataplane/src/budget.rs",
    "effects": "crates/state/src/effects.rs",
    "ports": "crates/dataplane/tests/ports.rs",
    "modes": "crates/dataplane/tests/modes.rs",
    "state": "crates/state/tests/control/main.rs",
    "concurrent": "crates/state/tests/control/concurrent.rs",
    "workers": "crates/state/tests/workers.rs",
    "arrivals": "crates/dataplane/tests/arrivals.rs",
    "scheduled": "crates/dataplane/tests/scheduled.rs",
    "timed": "crates/dataplane/tests/timed.rs",
    "clock": "crates/dataplane/src/clock.rs",
    "stamps": "crates/dataplane/src/worker/arrivals.rs",
    "times": "crates/jit/tests/differential/times.rs",
    "control": "crates/control/src/tests.rs",
    "jit": "crates/jit/tests/differential/main.rs",
    "stf": "crates/millrace/tests/cli/stf.rs",
    "run": "crates/millrace/tests/cli/run.rs",
    "links": "crates/millrace/tests/cli/links.rs",
    "af_packet": "crates/drivers/src/af_packet/tests.rs",
}
FILES = {
    "interp": "crates/interp/filetests/{}.mir",
    "lower": "crates/lower/filetests/{}.p4",
    "programs": "tests/programs/{}.stf",
    "p4_14": "tests/p4_14/{}.stf",
}
MODULES = {"tables": "crates/tables", "pipeline": "crates/pipeline"}


def files(pattern):
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines()]


def links():
    for page in files("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.split("#")[0]
            if "://" not in target and path and not (page.parent / path).exists():
                yield f"{page.relative_to(ROOT)}: {target} leads nowhere"


def semantics():
    named = set(re.findall(r"`(\w+)/(\w+)`", (ROOT / "docs/semantics.md").read_text()))
    for kind, name in sorted((kind, name) for kind, name in named if name != "NAME" and kind != "crates"):
        if kind in FUNCTIONS:
            found = f"fn {name}(" in (ROOT / FUNCTIONS[kind]).read_text()
        elif kind in FILES:
            found = (ROOT / FILES[kind].format(name)).exists()
        else:
            found = kind in MODULES and any((ROOT / MODULES[kind]).glob(f"*/{name}.rs"))
        if not found:
            yield f"docs/semantics.md: there is no test {kind}/{name}"


def metrics():
    """A histogram is in the table once; Prometheus has its parts as `NAME_bucket`, `NAME_sum` and `NAME_count`."""
    known = set(re.findall(r"\b(?:millrace|process)_\w+", (ROOT / "docs/observability.md").read_text()))
    for page in files("packaging/*"):
        for name in sorted(set(re.findall(r"\b(?:millrace|process)_\w+", page.read_text()))):
            if name not in known and re.sub(r"_(bucket|sum|count)$", "", name) not in known:
                yield f"{page.relative_to(ROOT)}: docs/observability.md has no metric {name}"


def named_dependencies(manifest, of_tests=True):
    """The names in the sections of a manifest that end in `dependencies`, with or without those of its tests."""
    section = ""
    for line in manifest.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section.endswith("dependencies") and (of_tests or not section.endswith("dev-dependencies")) and (name := re.match(r"[\w-]+", line)):
            yield name[0]


# The data path, the code generator, and the rooms that must not depend on them: clients, and the front end.
DATA_PATH = {"dataplane", "drivers", "frames", "interp", "jit", "midend", "state", "tables"}
CODE_GENERATOR = {"cranelift-codegen", "cranelift-frontend", "cranelift-native"}
WITHOUT_DATA_PATH = ["shell", "top", "thrift_api", "p4runtime_api", "observe_api", "ctl_api", "swap_report", "gnmi", "commands", "device_file", "toml_sections", "listen", "printable",
                     "graphs", "describe", "compile", "lower", "pipeline", "sema", "p4_14", "syntax"]


def rooms():
    """What ARCHITECTURE.md says of the crates: all are in its list, and depend only on crates that come later there; clients
    and the front end do not depend on the data path. (Tests may.)"""
    uses = {}
    for manifest in files("crates/*/Cargo.toml"):
        names = set(named_dependencies(manifest, of_tests=False))
        ours = {name.removeprefix("millrace-").replace("-", "_") for name in names if name.startswith("millrace-")}
        uses[manifest.parent.name] = ours | names & CODE_GENERATOR
    listed = re.findall(r"^\| \[`(\w+)`\]\(crates/\1\) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    for name in sorted(set(listed) ^ uses.keys()):
        yield f"ARCHITECTURE.md: the room {name} is {'not there' if name in listed else 'missing'}"
    for at, name in enumerate(listed):
        for used in sorted(uses.get(name, set()) & set(listed[:at])):
            yield f"crates/{name}/Cargo.toml: {used} is higher than {name} in the rooms of ARCHITECTURE.md"
    for name in WITHOUT_DATA_PATH:
        # Each crate with the path of dependencies that leads to it.
        paths, found = [[name]], set()
        while paths:
            path = paths.pop(0)
            for used in sorted(uses.get(path[-1], set()) - found):
                found.add(used)
                if used in DATA_PATH | CODE_GENERATOR:
                    yield f"crates/{name}/Cargo.toml: {name} must not depend on the data path: {' -> '.join([*path, used])}"
                else:
                    paths.append([*path, used])


# Crates whose code has another name.
IMPORTED_AS = {"perf-event2": "perf-event", "md-5": "md5"}


def dependencies():
    used = set()
    for manifest in [*files("crates/*/Cargo.toml"), *files("tests/*/Cargo.toml")]:
        sources = list(manifest.parent.rglob("*.rs"))
        # A test that includes an example of another crate needs what the example uses.
        for source in list(sources):
            included = re.findall(r'#\[path = "(.*?)"\]', source.read_text())
            sources += [source.parent / path for path in included]
        code = "".join(source.read_text() for source in sources)
        for name in named_dependencies(manifest):
            used.add(name)
            imported = IMPORTED_AS.get(name, name).replace("-", "_")
            if not re.search(rf"\b{imported}\b", code):
                yield f"{manifest.relative_to(ROOT)}: nothing uses {name}"
    declared = set(named_dependencies(ROOT / "Cargo.toml"))
    rows = re.findall(r"^\| ([a-z][a-z0-9_, -]*?)(?: \(.*?\))? \|", (ROOT / "docs/dependencies.md").read_text(), re.M)
    listed = {name.strip() for row in rows for name in row.split(",")} - {"crate"}
    ours = {name for name in used | declared if name.startswith("millrace-")}
    for name in sorted(declared - used):
        yield f"Cargo.toml: no crate uses {name}"
    for name in sorted((used - ours) ^ listed):
        yield f"docs/dependencies.md: {name} is {'not used' if name in listed else 'missing'}"


# Where the code of a finding is written: at its making, among the constants, or as the kind of a refused control text.
CODES = [
    r'Diagnostic::(?:error|warning)\(\s*"([\w-]+)"',
    r'= "([EW]\d{4})"',
    r'pub\(crate\) const \w+: &str = "([a-z-]+)";',
    r'(?:refused|diagnostics)\([^;]*?, "([a-z-]+)"\)',
]
CODE_FILES = {
    "crates/syntax/src/**/*.rs": CODES[:1],
    "crates/sema/src/codes.rs": CODES[1:2],
    "crates/p4_14/src/codes.rs": CODES[1:2],
    "crates/lower/src/fail.rs": CODES[2:3],
    "crates/lower/src/lib.rs": CODES[:1],
    "crates/millrace/src/*.rs": CODES[3:],
}


def codes():
    made = set()
    for pattern, expressions in CODE_FILES.items():
        for source in ROOT.glob(pattern):
            code = source.read_text().split("#[cfg(test)]\nmod tests {")[0]
            if source.name != "tests.rs":
                made.update(name for expression in expressions for name in re.findall(expression, code))
    listed = re.findall(r"^### (\S+)$", (ROOT / "docs/errors.md").read_text(), re.M)
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"docs/errors.md: {name} is there twice"
    for name in sorted(made ^ set(listed)):
        yield f"docs/errors.md: {name} is {'missing' if name in made else 'the code of no finding'}"


problems = [*links(), *semantics(), *dependencies(), *rooms(), *codes(), *metrics()]
print("\n".join(problems) or "the documents are right")
sys.exit(bool(problems))
