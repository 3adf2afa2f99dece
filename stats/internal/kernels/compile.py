"""Compiles kernels.cu to kernels.ptx; with --check, says whether that is up to date. It needs nvidia-cuda-nvrtc-cu12, and no GPU.

The PTX is for compute capability 5.0 and of the version that the oldest driver knows which ndbridge supports, that of CUDA 12.0.
Every newer driver compiles it for the GPU that is there.
"""

import ctypes
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
SOURCE, PTX = HERE / "kernels.cu", HERE / "kernels.ptx"
# No product and sum become one operation by themselves: numbers are to be what the CPU makes of them, to the last bit.
OPTIONS = [b"--gpu-architecture=compute_50", b"--fmad=false"]


def compiled():
    """Gives the PTX."""
    folder = pathlib.Path(importlib.util.find_spec("nvidia.cuda_nvrtc").submodule_search_locations[0])
    nvrtc = ctypes.CDLL(str(folder / "lib" / "libnvrtc.so.12"))
    program = ctypes.c_void_p()

    def call(name, *arguments):
        if result := getattr(nvrtc, name)(*arguments):
            sys.exit(f"{name}: error {result}")

    def text(name):
        size = ctypes.c_size_t()
        call(f"nvrtcGet{name}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{name}", program, buffer)
        return buffer.value.decode()

    call("nvrtcCreateProgram", ctypes.byref(program), SOURCE.read_bytes(), SOURCE.name.encode(), 0, None, None)
    if nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)):
        sys.exit(text("ProgramLog"))
    # Without the constants of a header that NVRTC reads by itself.
    return "".join(line for line in text("PTX").splitlines(True) if "2nv6target6detail" not in line)


def main():
    text = compiled()
    if sys.argv[1:] != ["--check"]:
        PTX.write_text(text)
    elif PTX.read_text() != text:
        sys.exit(f"{PTX.name} is not what {SOURCE.name} compiles to; run: make generate")


main()
