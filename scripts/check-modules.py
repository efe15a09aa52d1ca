#!/usr/bin/env python3
"""Whether modules use only those before them, whether files of src/codegen use one another in a circle, and whether
types share a name.

usage: check-modules.py [ROOT]

Order: looks at every `crate::NAME` in src/, and prints each use of a module that comes later in
ARCHITECTURE.md's map.

Circles: a file `x.rs` and the files in `x/` count as one, as they implement one thing. Prints the files of each
module that reach themselves through others, and likewise the files within each `x/`. A file uses another if a
`use` or a path names it, or names what the module above re-exports from it. Methods are not looked at.

Names: prints each struct, enum, union, trait and type alias of src/ whose name another one has too, with the places
of both; likewise in kernels/src/, sql/src/ and cluster/src/, crates of their own that count by themselves. Looks at definitions that begin a
line: types that an impl or a trait names (`type Item`) and those in a function are indented.

Mends: prints each file of src/mends/ that no test names. A fault of DataFusion's has a test that fails once it is mended
there, and the test says which file can go then.

Text: prints each line of src/exec/ that writes device code, as src/codegen/ does.

Emitted: prints each line of src/codegen/ that searches text which was emitted: what `Code::text()` yields, or a variable
named as such texts are (EMITTED). What is known of a statement is noted where it is written (`codegen/statements.rs`,
`codegen/device_function.rs`). Two functions split a text at its names (NAMES), as names are all that nobody notes.

Encodings: prints each line outside of src/column/ that names an encoding of columns, but for the two files that read and
write them in kernels (ENCODED). Others ask what they want to know (`column/encoding.rs`).

One place: `Tokenizer::new` stands in src/sql/text.rs alone, and the environment is read in kernels/src/environment.rs alone
(the commands in sql/src and cluster/src read that of a terminal). `DeviceKind` is the device crate's, and interop's.

Length: prints functions of more than 80 lines and files of more than 500 that scripts/long.txt does not list, that
have more lines than it says, or that it lists although they are short. That list only gets shorter.

Comments: prints those that open with "The same", which say nothing to who comes here first, and those that name a
type outside of backticks.

Tests are left out of all but mends and comments.
"""
import pathlib
import re
import sys

# Each may use those before it. `error` is used by all; `interop` is a leaf. What the device is, Cargo checks.
ORDER = [
    "column", "sql", "host", "io", "user_code", "codegen", "plan", "mends", "cpu", "exec", "query",
    "frame", "session", "plugin",
]

# A `use` of a module that others see again under the name of this one.
REEXPORT = re.compile(r"\bpub(?:\(\w+\))? use ([^;]+);")
USE = re.compile(r"\buse ([^;]+);")
PATH = re.compile(r"\b\w+(?:::\w+)+")
TYPE = re.compile(r"(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait|type) (\w+)")


def sources(folder):
    """Path within `folder` (without suffix) and code of each file, without comments and tests."""
    for path in sorted(folder.rglob("*.rs")):
        place = path.relative_to(folder).with_suffix("").parts
        if "tests" not in place:
            lines = path.read_text().split("\nmod tests {", 1)[0].splitlines()
            yield path, place, "\n".join(line.split("//")[0] for line in lines)


def late_uses(root):
    """Uses of a later module."""
    rank = {name: number for number, name in enumerate(ORDER)}
    for path, place, code in sources(root):
        module = place[0]
        for number, line in enumerate(code.splitlines(), 1):
            for used in re.findall(r"\bcrate::(\w+)", line):
                if rank.get(used, -1) > rank.get(module, len(ORDER)):
                    yield f"{path}:{number}: {module} uses {used}, which comes after it"


def device_text(root):
    """Device code that src/exec/ writes."""
    for path, _, code in sources(root / "exec"):
        for number, line in enumerate(code.splitlines(), 1):
            if re.search(r"\bout\.line\(|\.let_\(|\bfail_if", line):
                yield f"{path}:{number}: writes device code, which is for src/codegen/ to do"


EMITTED = re.compile(
    r"(?:\.text\(\)|\b(?:text|body|statements|prologue|declarations|comparisons|decide|write|lines?|rvalue|code))\s*"
    r"\.(contains|find|rfind|starts_with|ends_with|strip_prefix|strip_suffix|matches|match_indices|lines|r?split\w*)\(")
NAMES = {"parts.rs": "words", "params.rs": "named_in"}


def searched_text(root):
    """Searches of emitted text in src/codegen/."""
    for path, _, code in sources(root / "codegen"):
        for search in EMITTED.finditer(code):
            before = code[: search.end()].splitlines()
            function = next((found[2] for line in reversed(before) if (found := FUNCTION.match(line))), "")
            if NAMES.get(path.name) != function:
                yield f"{path}:{len(before)}: searches emitted text: note what it says where it is written"


ENCODED = ("codegen/generator.rs", "codegen/outputs.rs")


def named_encodings(root):
    """Encodings of columns that are named outside of src/column/."""
    for path, place, code in sources(root):
        if place[0] != "column" and path.relative_to(root).as_posix() not in ENCODED:
            for number, line in enumerate(code.splitlines(), 1):
                if re.search(r"\bEncoding::(Plain|Dictionary)\b", line):
                    yield f"{path}:{number}: names an encoding: ask the column, see column/encoding.rs"


def unwatched_mends(root):
    """Files of mends/ that no test in tests/ names."""
    tests = "".join(path.read_text() for path in (root.parent / "tests").rglob("*.rs"))
    for path in sorted((root / "mends").glob("*.rs")):
        if f"mends/{path.name}" not in tests:
            yield f"{path}: no test says when DataFusion has mended it"


def paths_of(tree):
    """The paths that a `use` names: `a::{b, c::{d, e}}` are three."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        return [head.split(" as ")[0].strip()]
    paths, depth, start = [], 0, 0
    body = rest.rstrip()[:-1] + ","
    for at, letter in enumerate(body):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0 and body[start:at].strip():
            paths += [head + path for path in paths_of(body[start:at])]
        if letter == "," and depth == 0:
            start = at + 1
    return paths


def uses_of(codes, crate):
    """Which files each file uses. Files are tuples of names; `crate` is the path of the folder they are in."""
    exported = {}
    for file, code in codes.items():
        paths = [path for tree in REEXPORT.findall(code) for path in paths_of(tree)]
        exported[file] = {path.split("::")[-1]: path for path in paths}

    def resolve(file, path):
        """The file that a path in `file` leads to."""
        names, here = path.split("::"), file
        if path.startswith(crate + "::"):
            names, here = names[len(crate.split("::")):], ()
        while names and names[0] in ("self", "super"):
            here = here[:-1] if names[0] == "super" else here
            names = names[1:]
        # Without a prefix a path begins here, or with what a glob brought from above.
        if path.startswith(names[0] + "::" if names else "::") and here + (names[0],) not in codes:
            here = here[:-1]
            if here + (names[0],) not in codes:
                return None
        for name in names:
            if here + (name,) in codes:
                here += (name,)
            else:
                again = exported.get(here, {}).get(name)
                return resolve(here, again) if again and here != file else here
        return here

    for file, code in codes.items():
        paths = [path for tree in USE.findall(code) for path in paths_of(tree)] + PATH.findall(USE.sub("", code))
        yield file, {resolve(file, path) for path in paths} - {None, (), file}


def circles(folder, crate):
    """Files that reach themselves through others, folder by folder."""
    codes = {place if place != ("mod",) else (): code for _, place, code in sources(folder)}
    uses = dict(uses_of(codes, crate))
    for above in sorted({file[:-1] for file in codes if file}):
        depth = len(above)
        inside = {file for file in codes if len(file) > depth and file[:depth] == above}
        edges = {file[depth]: set() for file in inside}
        for file in inside:
            edges[file[depth]] |= {used[depth] for used in uses[file] if used in inside} - {file[depth]}
        reached = {}
        for name in edges:
            found, todo = set(), list(edges[name])
            while todo:
                next_name = todo.pop()
                if next_name not in found:
                    found.add(next_name)
                    todo += edges[next_name]
            reached[name] = found
        seen = set()
        for name in sorted(edges):
            circle = {other for other in reached[name] if name in reached[other]}
            if circle and name not in seen:
                seen |= circle
                where = "/".join([str(folder), *above])
                yield f"{where}: files use one another in a circle: {', '.join(sorted(circle))}"


def shared_names(folder):
    """Names that two types have."""
    places = {}
    for path, _, code in sources(folder):
        for number, line in enumerate(code.splitlines(), 1):
            if defined := TYPE.match(line):
                places.setdefault(defined[1], []).append(f"{path}:{number}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{folder}: types share the name {name}: {', '.join(found)}"


# Where a text of SQL becomes tokens, and where the environment is read.
TOKENS, ENVIRONMENT = "src/sql/text.rs", "kernels/src/environment.rs"

# Crates that are commands.
COMMANDS = ("sql/src", "cluster/src")

# Where the kind of a device is told to others.
KINDS = ["src/lib.rs", "src/interop/device_arrow.rs"]

FUNCTION = re.compile(r"( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)")
MOST_OF_FUNCTION, MOST_OF_FILE = 80, 500


def crates(root):
    """Where the sources of the engine, of the device and of the commands are."""
    return [root / folder for folder in ("src", "kernels/src", *COMMANDS)]


def one_place(root):
    """What is to be in one file, elsewhere."""
    for folder in crates(root):
        for path, _, code in sources(folder):
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(code.splitlines(), 1):
                if "Tokenizer::new" in line and name != TOKENS:
                    yield f"{path}:{number}: sql::Text has the tokens of a text"
                if "DeviceKind" in line and name not in KINDS and folder == root / "src":
                    yield f"{path}:{number}: Device::of_kind tells what is otherwise in the simulator"
                if "env::var" in line and name != ENVIRONMENT and folder not in [root / of for of in COMMANDS]:
                    yield f"{path}:{number}: `environment` reads variables"


def lengths(root):
    """Long functions and files, by name, with their lines."""
    for folder in crates(root):
        for path, _, _ in sources(folder):
            name = path.relative_to(root).as_posix()
            lines = path.read_text().split("\nmod tests {", 1)[0].splitlines()
            if len(lines) > MOST_OF_FILE:
                yield name, len(lines)
            for at, line in enumerate(lines):
                if found := FUNCTION.match(line):
                    ends = (end for end in range(at, len(lines)) if lines[end] in (found[1] + "}", found[1] + ");"))
                    length = next(ends, at) - at + 1
                    if length > MOST_OF_FUNCTION:
                        yield f"{name} {found[2]}", length


def too_long(root):
    listed = {}
    for line in (root / "scripts" / "long.txt").read_text().splitlines():
        lines, name = line.split(" ", 1)
        listed[name] = int(lines)
    for name, lines in lengths(root):
        most = listed.pop(name, None)
        if most is None:
            yield f"{name}: {lines} lines"
        elif lines > most:
            yield f"{name}: {lines} lines, {most} of them are in scripts/long.txt"
    for name in listed:
        yield f"scripts/long.txt: {name} is not that long: take it out"


def comments(root):
    """Comments that tell nothing, or name types as if these were words."""
    types, found = set(), []
    for folder in crates(root):
        for path in sorted(folder.rglob("*.rs")):
            lines = path.read_text().splitlines()
            types |= {defined[1] for line in lines if (defined := TYPE.match(line))}
            found.append((path, lines))
    # A type of one word may be meant as that.
    types = {name for name in types if len(re.findall(r"[A-Z][a-z0-9]+", name)) > 1}
    for path, lines in found:
        fenced = False
        for number, line in enumerate(lines, 1):
            comment = re.match(r"\s*//[/!]?(.*)", line)
            if not comment:
                fenced = False
                continue
            text = comment[1]
            if text.startswith(" The same"):
                yield f"{path}:{number}: a comment that opens with \"The same\""
            if "```" in text:
                fenced = not fenced
            if fenced:
                continue
            text = re.sub(r"`[^`]*`|\[[^\]]*\](\([^)]*\))?|^ *\|.*", "", text)
            for word in re.findall(r"(?<![:\w])[A-Z][A-Za-z0-9]+\b", text):
                if word in types:
                    yield f"{path}:{number}: the type {word} stands outside of backticks"


root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
src = root / "src"
found = [*late_uses(src), *device_text(src), *searched_text(src), *named_encodings(src), *unwatched_mends(src), *one_place(root), *too_long(root), *comments(root)]
for crate in crates(root)[:2]:
    for folder in sorted(path for path in crate.iterdir() if path.is_dir()):
        found += circles(folder, f"crate::{folder.name}")
found += [name for crate in crates(root) for name in shared_names(crate)]
print("\n".join(found), end="\n" if found else "")
sys.exit(1 if found else 0)
