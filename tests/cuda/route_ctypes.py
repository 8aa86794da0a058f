"""The runtime through ctypes: each function by its address in the library, which no symbol of ours stands in front of."""
import ctypes
import re
import sys
from pathlib import Path

RUNTIME = {
    "use_device": "cudaSetDevice", "device": "cudaMalloc", "device_async": "cudaMallocAsync",
    "device_async_twin": "cudaMallocAsync_ptsz", "managed": "cudaMallocManaged", "pinned": "cudaMallocHost",
    "pinned_flags": "cudaHostAlloc", "release": "cudaFree", "release_async": "cudaFreeAsync",
    "release_async_twin": "cudaFreeAsync_ptsz", "release_pinned": "cudaFreeHost", "open_shared": "cudaIpcOpenMemHandle",
    "close_shared": "cudaIpcCloseMemHandle", "import_pointer": "cudaMemPoolImportPointer",
    "external": "cudaExternalMemoryGetMappedBuffer",
}
members = re.findall(r"\bint \(\*(\w+)\)\(", (Path(__file__).parent / "workload.h").read_text())
runtime = ctypes.CDLL("libcudart.so.13")
api = (ctypes.c_void_p * len(members))()
for index, member in enumerate(members):
    if member in RUNTIME:
        api[index] = ctypes.cast(getattr(runtime, RUNTIME[member]), ctypes.c_void_p)
words = [b"route_ctypes", *(word.encode() for word in sys.argv[2:])]
sys.exit(ctypes.CDLL(sys.argv[1]).workload_run(api, len(words), (ctypes.c_char_p * len(words))(*words)))
