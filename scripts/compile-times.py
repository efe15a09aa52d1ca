#!/usr/bin/env python3
"""Times NVRTC on recorded kernels, one after another on one core.

    scripts/compile-times.py LIBNVRTC DIRECTORY [--every N] [--repeats N] [--option=OPTION]... [--without=OPTION]... [--lines]

DIRECTORY is what tests wrote with WARPFRAME_RECORD_KERNELS. Prints, for each kind of kernel (what a file's name begins with),
how many there are, and the median and greatest time in milliseconds of a processor; of each kernel the least of its repeats counts.
--every N takes each Nth file; options come besides the engine's (kernels/src/compile/nvrtc.rs), for sm_90, or leave out one of them;
--lines prints each kernel, too.
"""

import argparse
import collections
import ctypes
import pathlib
import re
import statistics
import time

ENGINE = ["--std=c++17", "--device-int128", "-default-device", "--ptxas-options=-v", "--minimal", "--gpu-architecture=sm_90"]
KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])


def headers_of(text, known):
    """What a source includes, directly or through others, as the engine hands it to the compiler."""
    found, left = {}, [text]
    while left:
        for name in re.findall(r'^\s*#include "([^"]+)"', left.pop(), re.MULTILINE):
            if name in known and name not in found:
                found[name] = known[name]
                left.append(known[name])
    return found


def compile_once(nvrtc, path, headers, options):
    """Seconds of a processor from a source to its image."""
    text = path.read_text()
    included = headers_of(text, headers)
    names, texts = strings(list(included)), strings(list(included.values()))
    program = ctypes.c_void_p()
    start = time.process_time()
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), path.name.encode(), len(included), texts, names
    )
    assert made == 0, path
    status = nvrtc.nvrtcCompileProgram(program, len(options), strings(options))
    if status != 0:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{path}: {log.value.decode(errors='replace')}")
    taken = time.process_time() - start
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nvrtc")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--lines", action="store_true")
    arguments = parser.parse_args()

    for builtins in pathlib.Path(arguments.nvrtc).parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)  # NVRTC opens it by name
    nvrtc = ctypes.CDLL(arguments.nvrtc)
    headers = {path.name: path.read_text() for path in KERNELS.glob("*.cuh")}
    options = [option for option in ENGINE if option not in arguments.without] + arguments.option
    paths = sorted(arguments.directory.glob("*.cu"))[:: arguments.every]
    least = dict.fromkeys(paths, float("inf"))
    # One round after another: a moment in which the machine is slow then spoils one repeat of many
    # kernels, not all of one.
    for _ in range(arguments.repeats):
        for path in paths:
            least[path] = min(least[path], compile_once(nvrtc, path, headers, options) * 1e3)
    kinds = collections.defaultdict(list)
    for path, taken in least.items():
        kinds[re.sub(r"(_[0-9a-f]{8})?-[0-9a-f]{8}$", "", path.stem)].append(taken)
        if arguments.lines:
            print(f"{taken:8.1f}  {path.name}")
    for kind, times in sorted(kinds.items(), key=lambda item: -sum(item[1])):
        print(f"{kind:32} {len(times):6} kernels   median {statistics.median(times):7.1f}   most {max(times):7.1f} ms")
    all_times = [taken for times in kinds.values() for taken in times]
    print(f"{'all':32} {len(all_times):6} kernels   median {statistics.median(all_times):7.1f}   most {max(all_times):7.1f} ms")


if __name__ == "__main__":
    main()
