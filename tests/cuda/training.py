"""
A training loop over the doubles of PyTorch's libraries: each step makes activations and gives them back, and keeps its loss.

training.py STEPS [LOSS_BYTES]: ends with an exception when the device is full. Prints what libc10 was told: blocks, bytes, failed_requests.
"""
import ctypes
import sys

steps, loss_bytes = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40960
ctypes.CDLL("libcuda.so.1").cuInit(0)
torch = ctypes.CDLL("libc10_cuda.so")  # RTLD_LOCAL, as Python opens its extensions
torch.c10_cuda_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
torch.c10_cuda_allocate.restype = ctypes.c_void_p
torch.c10_cuda_release.argtypes = [ctypes.c_void_p]


def tensor(size, device=0):
    addr = torch.c10_cuda_allocate(size, device)
    if addr is None:
        raise MemoryError(f"CUDA out of memory. Tried to allocate {size} bytes")
    return addr


def forward():
    return [tensor(size) for size in (300000, 100000, 50000)]


def report():
    blocks, told, refused = ctypes.c_long(), ctypes.c_int64(), ctypes.c_long()
    ctypes.CDLL("libc10.so").c10_told(ctypes.byref(blocks), ctypes.byref(told), ctypes.byref(refused))
    print(blocks.value, told.value, refused.value, flush=True)


losses = []
try:
    for step in range(steps):
        activations = forward()
        losses.append(tensor(loss_bytes))
        for block in activations:
            torch.c10_cuda_release(block)
finally:
    report()
