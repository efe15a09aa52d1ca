#!/usr/bin/env python3
"""Whether columns go to and come from CuPy and PyTorch without leaving the GPU.

usage: check-device-doors.py [LIBRARY]

LIBRARY is what `cargo build --workspace --all-features --example device_doors` makes, by default
target/debug/examples/libdevice_doors.so. Needs a GPU, NVRTC where the library finds it, and CuPy; what PyTorch
would be asked is passed over where it is missing. With WARPFRAME_DEVICE=sim the columns lie in host memory, and NumPy
is asked instead.

Prints a line for each check, OK or FAILED, and exits with 1 if any failed.
"""
import ctypes
import gc
import os
import pathlib
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = 1_000_000
SUM = ROWS * (ROWS + 1) / 8  # of 1/4, 2/4, ...
SIM = os.environ.get("WARPFRAME_DEVICE") == "sim"

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.restype, set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

# A capsule keeps the address of its name.
TENSOR, USED, VERSIONED = b"dltensor", b"used_dltensor", b"dltensor_versioned"


class Doors:
    """The library's functions."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.wf_error.restype = ctypes.c_char_p
        self.library.wf_used.restype = ctypes.c_uint64
        self.library.wf_stream.restype = ctypes.c_void_p

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.library.wf_error().decode()}")

    def used(self):
        return self.library.wf_used()

    def stream(self):
        return self.library.wf_stream() or None

    def produced(self, rows):
        """An object that libraries of tensors take."""
        tensor = ctypes.c_void_p()
        self.call("wf_produce", ctypes.c_uint64(rows), ctypes.byref(tensor))
        return Tensor(new_capsule(tensor, TENSOR, None))

    def versioned(self, rows):
        tensor = ctypes.c_void_p()
        self.call("wf_produce_versioned", ctypes.c_uint64(rows), ctypes.byref(tensor))
        return Tensor(new_capsule(tensor, VERSIONED, None))

    def consumed(self, capsule):
        """The sum of a tensor in a capsule, and bytes that were copied for it."""
        tensor = pointer_of(capsule, TENSOR)
        set_name(capsule, USED)
        total, copied = ctypes.c_double(), ctypes.c_uint64()
        self.call("wf_consume", ctypes.c_void_p(tensor), ctypes.byref(total), ctypes.byref(copied))
        return total.value, copied.value


class Tensor:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, *, stream=None, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0) if SIM else (2, 0)


def equal(found, expected, what=""):
    assert found == expected, f"{what}: {found}, {expected} is expected"


def of_array(doors, library):
    """CuPy, or NumPy on the simulator: its arrays are ours, and ours its own."""

    def to_it():
        before = doors.used()
        array = library.from_dlpack(doors.produced(ROWS))
        equal(float(array.sum()), SUM, "the sum")
        assert doors.used() >= before + 8 * ROWS, "it is no longer in use while the array lives"
        del array
        gc.collect()
        equal(doors.used(), before, "bytes in use behind it")

    def from_it():
        # Slots of allocators begin where kernels expect it.
        array = library.arange(1, ROWS + 1, dtype=library.float64) / 4
        total, copied = doors.consumed(capsule_of(doors, array))
        equal(total, SUM, "the sum")
        if not SIM:
            equal(copied, 0, "bytes copied")

    def a_view_from_it():
        array = library.arange(0, ROWS + 1, dtype=library.float64) / 4
        total, copied = doors.consumed(capsule_of(doors, array[1:]))
        equal(total, SUM, "the sum")
        assert copied > 0 or SIM, "a view that begins anywhere is copied"

    def there_and_back():
        array = library.from_dlpack(doors.produced(ROWS))
        equal(doors.consumed(capsule_of(doors, array * 2))[0], 2 * SUM, "the sum")

    return [to_it, from_it, a_view_from_it, there_and_back]


def capsule_of(doors, array):
    return array.__dlpack__() if SIM else array.__dlpack__(stream=doors.stream())


def of_cupy(doors, cupy):
    def in_order_with_another_stream():
        """A kernel that takes a while, whose values a query reads without a wait of the host."""
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            array = cupy.zeros(ROWS)
            for _ in range(200):
                array += 1
            capsule = array.__dlpack__(stream=stream.ptr)
        doors.call("wf_wait_for", ctypes.c_void_p(stream.ptr))
        equal(doors.consumed(capsule)[0], 200.0 * ROWS, "the sum")

    def versioned():
        before = doors.used()
        try:
            array = cupy.from_dlpack(doors.versioned(ROWS))
        except Exception as error:  # CuPy's older versions know no versions, some refuse what is read-only
            print(f"  (passed over: {type(error).__name__}: {error})")
            return
        equal(float(array.sum()), SUM, "the sum")
        del array
        gc.collect()
        equal(doors.used(), before, "bytes in use behind it")

    return [in_order_with_another_stream, versioned]


def of_torch(doors, torch):
    def to_torch():
        before = doors.used()
        tensor = torch.from_dlpack(doors.produced(ROWS))
        equal(float(tensor.sum()), SUM, "the sum")
        equal(tensor.device.type, "cuda", "the device")
        del tensor
        gc.collect()
        equal(doors.used(), before, "bytes in use behind it")

    def from_torch():
        tensor = torch.arange(1, ROWS + 1, dtype=torch.float64, device="cuda") / 4
        total, copied = doors.consumed(tensor.__dlpack__(stream=doors.stream()))
        equal((total, copied), (SUM, 0), "the sum, and bytes copied")

    return [to_torch, from_torch]


def of_ours(doors):
    def through_a_tensor():
        before = doors.used()
        equal(doors.consumed(doors.produced(ROWS).capsule), (SUM, 0), "the sum, and bytes copied")
        equal(doors.used(), before, "bytes in use behind it")

    def through_arrow():
        before = doors.used()
        # Larger than the structures are.
        array, schema, total = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256), ctypes.c_double()
        doors.call("wf_produce_arrow", ctypes.c_uint64(ROWS), array, schema)
        doors.call("wf_consume_arrow", array, schema, ctypes.byref(total))
        equal(total.value, SUM, "the sum")
        equal(doors.used(), before, "bytes in use behind it")

    def a_kernel():
        total = ctypes.c_double()
        doors.call("wf_kernel", ctypes.c_uint64(ROWS), ctypes.byref(total))
        equal(total.value, 2 * SUM + ROWS, "the sum")

    return [through_a_tensor, through_arrow, a_kernel]


def main():
    default = ROOT / "target" / "debug" / "examples" / "libdevice_doors.so"
    doors = Doors(sys.argv[1] if len(sys.argv) > 1 else default)
    checks = [("ours", check) for check in of_ours(doors)]
    if SIM:
        try:
            import numpy

            checks += [("numpy", check) for check in of_array(doors, numpy)]
        except ImportError:
            print("passed over: numpy is not installed")
    else:
        import cupy

        checks += [("cupy", check) for check in of_array(doors, cupy) + of_cupy(doors, cupy)]
        try:
            import torch

            checks += [("torch", check) for check in of_torch(doors, torch)]
        except ImportError:
            print("passed over: torch is not installed")
    failed = 0
    for library, check in checks:
        try:
            check()
            print(f"OK      {library}: {check.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {library}: {check.__name__}")
            traceback.print_exc()
        sys.stdout.flush()
    print(f"{len(checks) - failed} of {len(checks)} OK")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
