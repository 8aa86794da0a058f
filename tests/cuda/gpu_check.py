#!/usr/bin/env python3
"""
Are the sums right on a machine with an NVIDIA GPU?  `make gpu-check`, or gpu_check.py --build FOLDER [ROW...]

FOLDER holds libkmemshim.so and kmemshim; without it, the folder of this file or build/ of the source. Nothing is compiled: CUDA
is called through ctypes, and PyTorch, JAX and CuPy are used where this Python has them. Each row runs a program under the library,
which kills itself while it holds memory; what the capture says must be what the program asked for, what its framework says, and
what the driver says. It takes at most 6 minutes, uses the first visible device, needs 3 GiB of it, and shares it with others: the
driver's figures are compared by their differences, and not at all where they move by themselves.

Prints a row for each check: ok, WRONG, or skipped and why. Exits with 1 when a row is WRONG or when nothing could be checked.
"""
import argparse
import contextlib
import ctypes
import glob
import json
import mmap
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIB = 1 << 20
SECONDS, PROGRAM_SECONDS = 290, 60  # of all rows, and of each program
KEPT, RELEASED = [32 * MIB, 64 * MIB], 128 * MIB
SLACK = 16 * MIB  # the driver's figures are rounded up to its own pages
DEVICE, PINNED, MANAGED, REGISTERED, GRAPH = "cuda:0", "cuda/pinned", "cuda/managed", "cuda/registered", "cuda/graph"
COST_MAX = 1.25
NOT_SUPPORTED, OUT_OF_MEMORY = 801, 2


class Skipped(Exception):
    pass


# --- CUDA, in the programs that are recorded ------------------------------------------------------

class Refused(Exception):
    pass


class Extent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("width", "height", "depth")]


class Pitched(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_void_p), *((name, ctypes.c_size_t) for name in ("pitch", "width", "height"))]


class Shape3D(ctypes.Structure):  # CUDA_ARRAY3D_DESCRIPTOR
    _fields_ = [*((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
                *((name, ctypes.c_uint) for name in ("format", "channels", "flags"))]


class GraphMemory(ctypes.Structure):  # cudaMemAllocNodeParams
    _fields_ = [("pool", ctypes.c_int * 22), ("access", ctypes.c_void_p), ("access_count", ctypes.c_size_t),
                ("bytes", ctypes.c_size_t), ("addr", ctypes.c_void_p)]


PLACE = (ctypes.c_int * 32)(1, 0, 1, 0)           # CUmemAllocationProp and CUmemPoolProps: pinned, not shared, of device 0
FLOATS = (ctypes.c_int * 5)(32, 32, 32, 32, 2)    # cudaChannelFormatDesc: four floats, 16 bytes
ROW_ELEMENTS = 1024


def find_runtime():
    names = [f"libcudart.so.{version}" for version in ("13", "12", "11.0")]
    folders = [os.path.join(folder, "nvidia", "*", "lib") for folder in sys.path] + \
              [os.path.join(folder, "lib64") for folder in (os.environ.get("CUDA_HOME", "/usr/local/cuda"), "/usr/local/cuda-*")]
    for name in names + [file for folder in folders for version in names for file in sorted(glob.glob(os.path.join(folder, version)))]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise Skipped("no libcudart.so")


class Cuda:
    """The runtime and the driver; the primary context of the first device is the current one."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise Skipped("no CUDA driver") from None
        self.runtime = find_runtime()
        try:
            self.call("cudaSetDevice", 0)
            self.call("cudaFree", None)
        except Refused as why:
            raise Skipped(f"no CUDA device: {why}") from None

    def call(self, name, *words):
        function = getattr(self.runtime if name.startswith("cuda") else self.driver, name, None)
        if function is None:
            raise Skipped(f"this CUDA has no {name}")
        result = function(*(ctypes.c_uint64(word) if isinstance(word, int) else word for word in words))
        if result == NOT_SUPPORTED:
            raise Skipped(f"{name}: not supported here")
        if result != 0:
            raise Refused(f"{name} = {result}")

    def made(self, name, *words):
        """What a function writes to its first parameter, a pointer or a handle."""
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *words)
        return made

    def default_pool(self):
        return self.made("cuDeviceGetDefaultMemPool", 0)

    def own_pool(self):
        self.pool = getattr(self, "pool", None) or self.made("cuMemPoolCreate", PLACE)
        return self.pool

    def used(self):
        """Of the device, by all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def used_of(self, pool):
        used = ctypes.c_uint64()
        self.call("cudaDeviceSynchronize")
        self.call("cuMemPoolGetAttribute", pool, 7, ctypes.byref(used))  # CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        return used.value


def with_pitch(cuda, size):
    pitch = ctypes.c_size_t()
    addr = cuda.made("cudaMallocPitch", ctypes.byref(pitch), MIB - 100, size // MIB)
    return addr, pitch.value * (size // MIB)


def solid(cuda, size):
    block = Pitched()
    cuda.call("cudaMalloc3D", ctypes.byref(block), Extent(MIB, size // MIB // 2, 2))
    return ctypes.c_void_p(block.addr), block.pitch * (size // MIB)


def array(cuda, size):
    return cuda.made("cudaMallocArray", FLOATS, ROW_ELEMENTS, size // 16 // ROW_ELEMENTS, 0), size


def array_3d(cuda, size):
    return cuda.made("cudaMalloc3DArray", FLOATS, Extent(ROW_ELEMENTS, size // 16 // ROW_ELEMENTS // 4, 4), 0), size


def levels(cuda, size):
    shape = Shape3D(ROW_ELEMENTS, size // 16 // ROW_ELEMENTS, 0, 0x20, 4, 0)  # CU_AD_FORMAT_FLOAT
    return cuda.made("cuMipmappedArrayCreate", ctypes.byref(shape), 1), size


def registered(cuda, size):
    memory = (ctypes.c_char * size).from_buffer(mmap.mmap(-1, size))
    cuda.call("cudaHostRegister", memory, size, 0)
    return memory, size


def physical(cuda, size):
    """As segments that grow: the handle goes at once, the mapping stays."""
    handle, addr = cuda.made("cuMemCreate", size, PLACE, 0), cuda.made("cuMemAddressReserve", size, 0, 0, 0)
    cuda.call("cuMemMap", addr, size, 0, handle, 0)
    cuda.call("cuMemRelease", handle)
    return addr, size


def graph(cuda, size):
    cuda.graph = getattr(cuda, "graph", None) or cuda.made("cudaGraphCreate", 0)
    memory = GraphMemory((ctypes.c_int * 22)(*PLACE[:22]), None, 0, size)
    cuda.last_node = cuda.made("cudaGraphAddMemAllocNode", cuda.graph, None, 0, ctypes.byref(memory))
    return ctypes.c_void_p(memory.addr), size


def graph_free(cuda, addr, _):
    cuda.made("cudaGraphAddMemFreeNode", cuda.graph, ctypes.byref(cuda.last_node), 1, addr)


def asked(name, *words):
    """name(&addr, bytes, words...)"""
    return lambda cuda, size: (cuda.made(name, size, *words), size)


def pooled(name, pool):
    return lambda cuda, size: (cuda.made(name, size, pool(cuda), None), size)


def release(name, *words):
    return lambda cuda, addr, size: cuda.call(name, addr, *words)


free, free_async, free_host, free_array = release("cudaFree"), release("cudaFreeAsync", None), release("cudaFreeHost"), release("cudaFreeArray")
# What the driver says of it. Managed memory is nowhere until it is touched.
by_device, by_default_pool, by_own_pool = Cuda.used, lambda cuda: cuda.used_of(cuda.default_pool()), lambda cuda: cuda.used_of(cuda.own_pool())
nobody = lambda cuda: None  # noqa: E731
KINDS = {  # domain, who knows of it too, how it is made, how it is released
    "cudaMalloc": (DEVICE, by_device, asked("cudaMalloc"), free),
    "cudaMallocPitch": (DEVICE, by_device, with_pitch, free),
    "cudaMalloc3D": (DEVICE, by_device, solid, free),
    "cudaMallocArray": (DEVICE, by_device, array, free_array),
    "cudaMalloc3DArray": (DEVICE, by_device, array_3d, free_array),
    "cuMipmappedArrayCreate": (DEVICE, by_device, levels, release("cuMipmappedArrayDestroy")),
    "cudaMallocAsync": (DEVICE, by_default_pool, asked("cudaMallocAsync", None), free_async),
    "cudaMallocFromPoolAsync": (DEVICE, by_own_pool, pooled("cudaMallocFromPoolAsync", Cuda.own_pool), free_async),
    "cudaMallocManaged": (MANAGED, nobody, asked("cudaMallocManaged", 1), free),
    "cudaMallocHost": (PINNED, nobody, asked("cudaMallocHost"), free_host),
    "cudaHostAlloc": (PINNED, nobody, asked("cudaHostAlloc", 0), free_host),
    "cudaHostRegister": (REGISTERED, nobody, registered, release("cudaHostUnregister")),
    "cudaGraphAddMemAllocNode": (GRAPH, nobody, graph, graph_free),
    "cuMemAlloc": (DEVICE, by_device, asked("cuMemAlloc_v2"), release("cuMemFree_v2")),
    "cuMemAllocManaged": (MANAGED, nobody, asked("cuMemAllocManaged", 1), release("cuMemFree_v2")),
    "cuMemAllocAsync": (DEVICE, by_default_pool, asked("cuMemAllocAsync", None), release("cuMemFreeAsync", None)),
    "cuMemAllocFromPoolAsync": (DEVICE, by_own_pool, pooled("cuMemAllocFromPoolAsync", Cuda.own_pool), release("cuMemFreeAsync", None)),
    "cuMemHostAlloc": (PINNED, nobody, asked("cuMemHostAlloc", 0), release("cuMemFreeHost")),
    "cuMemCreate": (DEVICE, by_device, physical, lambda cuda, addr, size: cuda.call("cuMemUnmap", addr, size)),
}


def hold(cuda, kind, is_planted):
    """Keeps two blocks of a kind, and releases a third."""
    domain, knows, make, give_back = KINDS[kind]
    before = knows(cuda)
    blocks = [make(cuda, size) for size in KEPT]
    kept.append(blocks)
    gone = make(cuda, RELEASED)
    give_back(cuda, *gone)
    if is_planted:  # one that is not spoken of
        make(cuda, KEPT[0])
    live = sum(size for _, size in blocks)
    return {"live": {domain: live}, "allocated": {domain: live + gone[1]}, "driver": None if before is None else knows(cuda) - before}


def hold_nothing(cuda):
    """A context takes memory of the device, and is no allocation of the program's. Does the device's figure move by itself?"""
    seen = set()
    for _ in range(10):
        seen.add(cuda.used())
        time.sleep(.05)
    return {"live": {}, "moves": len(seen) > 1}


def hold_refused(cuda):
    try:
        cuda.call("cudaMalloc", ctypes.byref(ctypes.c_void_p()), 1 << 45)
    except Refused as why:
        assert str(why).endswith(f"= {OUT_OF_MEMORY}"), why
        return {"live": {}, "refused": 1 << 45}
    raise Skipped("the device has 32 TiB")


def hold_more_and_more(cuda):
    for count in range(1, 500):
        cuda.made("cudaMalloc", 4 * MIB)
        print(json.dumps({"live": {DEVICE: count * 4 * MIB}}), flush=True)
    return {"live": {DEVICE: count * 4 * MIB}}


# --- frameworks ------------------------------------------------------------------------------------

def torch_said(torch):
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    return {"live": {DEVICE: stats["reserved_bytes.all.current"], DEVICE + "/tensors": stats["allocated_bytes.all.current"]}}


def find_torch():
    import torch
    if not torch.cuda.is_available():
        raise Skipped("no CUDA device" if torch.version.cuda else "torch without CUDA")
    return torch


def torch_tensors():
    torch = find_torch()
    kept.append([torch.ones(count, device="cuda") for count in (10, 1000000, 30 << 20)])
    return torch_said(torch)


def torch_fragments():
    """Every second of many blocks of several sizes is released: their room stays with PyTorch."""
    torch = find_torch()
    blocks = [torch.empty((1 + number % 7) * 300000, device="cuda") for number in range(200)]
    kept.append(blocks[::2])
    del blocks[:]
    said = torch_said(torch)
    assert said["live"][DEVICE] > said["live"][DEVICE + "/tensors"] * 1.2, said
    return said


def torch_empty_cache():
    torch = find_torch()
    blocks = [torch.empty(8 << 20, device="cuda") for _ in range(8)]
    kept.append(blocks[0])
    del blocks
    before = torch_said(torch)["live"][DEVICE]
    torch.cuda.empty_cache()
    said = torch_said(torch)
    assert said["live"][DEVICE] < before, said
    return said


def torch_graph_pool():
    torch = find_torch()
    graph_of_torch, start = torch.cuda.CUDAGraph(), torch.ones(4 << 20, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        start * 2 + 1
    torch.cuda.synchronize()
    with torch.cuda.graph(graph_of_torch):
        end = start * 2 + 1
    graph_of_torch.replay()
    kept.append((graph_of_torch, start, end))
    return torch_said(torch)


def torch_refused():
    torch = find_torch()
    kept.append(torch.ones(1 << 20, device="cuda"))
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return torch_said(torch) | {"refused": 1 << 44}
    raise Skipped("the device has 16 TiB")


def torch_train():
    """Seconds of 300 steps of a small network: many tensors, little work."""
    torch = find_torch()
    model = torch.nn.Sequential(*(layer for _ in range(6) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU()))).cuda()
    optimizer, data = torch.optim.Adam(model.parameters()), torch.ones(64, 256, device="cuda")
    for step in range(400):
        if step == 100:
            torch.cuda.synchronize()
            start = time.perf_counter()
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    return {"seconds": time.perf_counter() - start}


def jax_array():
    import jax
    import jax.numpy as jnp
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError:
        raise Skipped("no CUDA device") from None
    kept.append(jax.device_put(jnp.ones(8 << 20), device).block_until_ready())
    stats = device.memory_stats() or {}
    if "pool_bytes" not in stats:
        raise Skipped("this JAX does not say what its pool has")
    return {"live": {DEVICE: stats["pool_bytes"]}, "more": 512 * MIB}  # cuBLAS and others take their own


def cupy_array():
    import cupy
    try:
        kept.append([cupy.zeros(count, dtype=cupy.uint8) for count in (100, 5000000, 64 * MIB)])
    except cupy.cuda.runtime.CUDARuntimeError as why:
        raise Skipped(f"no CUDA device: {why}") from None
    return {"live": {DEVICE: cupy.get_default_memory_pool().total_bytes()}}


kept = []
PROGRAMS = {function.__name__: function for function in (
    torch_tensors, torch_fragments, torch_empty_cache, torch_graph_pool, torch_refused, torch_train, jax_array, cupy_array)}
ON_CUDA = {function.__name__: function for function in (hold_nothing, hold_refused, hold_more_and_more)}


def be_program(name, is_planted):
    """What a recorded program does: it says what it holds, and is killed while it holds it."""
    try:
        if name in PROGRAMS:
            said = PROGRAMS[name]()
        elif name in ON_CUDA:
            said = ON_CUDA[name](Cuda())
        else:
            said = hold(Cuda(), name, is_planted)
    except Skipped as why:
        said = {"skip": str(why)}
    except ImportError as why:  # a module that is not there, or one that needs a library that is not there
        said = {"skip": str(why)}
    print(json.dumps(said), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


# --- rows ------------------------------------------------------------------------------------------

class Check:
    def __init__(self, build, options):
        self.shim, self.kmemshim = build / "libkmemshim.so", build / "kmemshim"
        self.options, self.end, self.missing = options, time.monotonic() + SECONDS, {}
        self.is_moving, self.counts = False, {"ok": 0, "WRONG": 0, "skipped": 0}

    def start(self, name, out, is_recorded=True, **more):
        """What it says and complains of goes to files beside the capture."""
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "PYTORCH_", "XLA_PYTHON_"))}
        env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        if is_recorded:
            env.update(LD_PRELOAD=str(self.shim), KMEMSHIM_OUT=str(out))
        words = [sys.executable, os.path.abspath(__file__), "--program", name] + ["--plant", name] * (name == self.options.plant)
        with open(f"{out}.said", "w") as said, open(f"{out}.complaint", "w") as complaint:
            process = subprocess.Popen(words, env=env | more, stdin=subprocess.DEVNULL, stdout=said, stderr=complaint, start_new_session=True)
        process.out = out
        return process

    def said(self, out):
        return [json.loads(line) for line in Path(f"{out}.said").read_text().splitlines() if line.startswith("{") and line.endswith("}")]

    def finish(self, process):
        """What the program said last."""
        left = self.end - time.monotonic()
        try:
            process.wait(max(0, min(self.options.seconds, left)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # it may be in the driver for ever
                process.wait(5)
            if left < self.options.seconds:
                raise Skipped("no time left") from None
            raise AssertionError(f"the program did not end in {self.options.seconds} s") from None
        said = self.said(process.out)
        if process.returncode != -signal.SIGKILL or not said:
            complaint = Path(f"{process.out}.complaint").read_text(errors="replace").strip().splitlines()
            raise AssertionError(f"the program ended with {process.returncode}: {(complaint or ['it said nothing'])[-1]}")
        if "skip" in said[-1]:
            raise Skipped(said[-1]["skip"])
        return said[-1]

    def run(self, name, out, **more):
        """A framework that is not there is asked for once."""
        if time.monotonic() > self.end:
            raise Skipped("no time left")
        framework = name.split("_")[0] if name in PROGRAMS else None
        if framework in self.missing:
            raise Skipped(self.missing[framework])
        try:
            return self.finish(self.start(name, out, **more))
        except Skipped as why:
            if framework and "time" not in str(why) and "has" not in str(why) and "say" not in str(why):
                self.missing[framework] = str(why)
            raise

    def report(self, out):
        done = subprocess.run([self.kmemshim, "sites", out, "--json"], capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise AssertionError(f"kmemshim sites: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def compare(self, said, report):
        """Expected, recorded: equal, but for what a program says that others take beside it."""
        totals = {domain: total for domain, total in report["totals"].items() if domain.startswith("cuda")}
        expected, recorded, is_right = [], [], True
        for what in ("live", "allocated"):
            domains = {**({domain: 0 for domain in totals} if what == "live" else {}), **said.get(what, {})}
            for domain, value in domains.items():
                found = totals.get(domain, {}).get(f"{what}_bytes", 0)
                more = said.get("more", 0) if domain == DEVICE or domain not in said[what] else 0
                is_right &= value <= found <= value + more
                if found or value:
                    expected.append(f"{domain} {what} {value}{f' to {value + more}' if more else ''}")
                    recorded.append(f"{domain} {what} {found}")
        if said.get("driver") is not None and not self.is_moving:
            live = sum(said["live"].values())
            is_right &= live <= said["driver"] <= live + SLACK
            expected.append(f"driver {said['driver']}")
        if "refused" in said:
            expected.append(f"refused {said['refused']}")
            refused = [request for request in report["refused_requests"] if request["domain"] == DEVICE and request.get("total_bytes")]
            recorded.append("refused " + (" ".join(str(request["bytes"]) for request in refused) or "nothing"))
            is_right &= any(request["bytes"] >= said["refused"] for request in refused)
        return "; ".join(expected) or "nothing", "; ".join(recorded) or "nothing", is_right

    def sums(self, name, out, **more):
        for attempt in range(3):
            said = self.run(name, out / str(attempt), **more)
            self.is_moving |= said.get("moves", False)
            report = self.report(out / str(attempt))
            row = self.compare(said, report)
            if row[2] or not self.compare(said | {"driver": None}, report)[2]:
                break  # otherwise the driver's figure alone differs: others may use the device for a moment
        return row

    def two_processes(self, out):
        """At the same time. Each has its own sums; what the driver says is of both."""
        both = [self.start("cudaMalloc", out / name) for name in ("first", "second")]
        rows = [self.compare(self.finish(process) | {"driver": None}, self.report(process.out)) for process in both]
        return *(" and ".join(texts) for texts in list(zip(*rows))[:2]), all(row[2] for row in rows)

    def killed(self, out):
        """At a moment that the program does not choose: the block that is on its way may be recorded."""
        process = self.start("hold_more_and_more", out / "0")
        end = time.monotonic() + self.options.seconds
        while len(self.said(process.out)) < 20 and process.poll() is None and time.monotonic() < end:
            time.sleep(.001)
        process.kill()
        return self.compare(self.finish(process) | {"more": 4 * MIB}, self.report(process.out))

    def cost(self, out):
        """Of a training step, plain and recorded in turns: WRONG where each recorded run took longer than each plain one, and too long."""
        seconds = {True: [], False: []}
        for turn in range(3):
            for is_recorded in (False, True):
                seconds[is_recorded].append(self.run("torch_train", out / str(turn), is_recorded=is_recorded)["seconds"])
        ratio = statistics.median(seconds[True]) / statistics.median(seconds[False])
        is_right = ratio <= COST_MAX or min(seconds[True]) < max(seconds[False])
        return f"at most {COST_MAX}", f"{ratio:.2f} of {1e6 * statistics.median(seconds[False]) / 300:.0f} us a step", is_right

    def rows(self):
        def sums(name, **more):
            return lambda out: self.sums(name, out, **more)

        def segments(word):
            return {name: f"expandable_segments:{word}" for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")}

        yield "a context alone", sums("hold_nothing")
        for kind in KINDS:
            yield kind, sums(kind)
        yield "cudaMalloc is refused", sums("hold_refused")
        yield "two processes on a device", self.two_processes
        yield "SIGKILL at any moment", self.killed
        yield "torch: tensors", sums("torch_tensors")
        for word in ("False", "True"):
            yield f"torch: fragments, expandable segments {word}", sums("torch_fragments", **segments(word))
        yield "torch: empty_cache", sums("torch_empty_cache")
        yield "torch: pool of a graph", sums("torch_graph_pool")
        yield "torch: out of memory", sums("torch_refused")
        yield "JAX: takes a fifth of the device first", sums("jax_array", XLA_PYTHON_CLIENT_MEM_FRACTION=".2")
        yield "JAX: takes what it needs", sums("jax_array", XLA_PYTHON_CLIENT_PREALLOCATE="false")
        yield "CuPy: arrays", sums("cupy_array")
        yield "cost of a training step", self.cost

    def main(self):
        print(f"{'what':<44} {'verdict':<8} expected | recorded")
        with tempfile.TemporaryDirectory(prefix="kmemshim-gpu-check-") as folder:
            chosen = [row for row in self.rows() if not self.options.rows or row[0] in self.options.rows]
            for number, (name, row) in enumerate(chosen):
                out = Path(folder) / str(number)
                out.mkdir()
                try:
                    expected, recorded, is_right = row(out)
                    verdict, text = "ok" if is_right else "WRONG", f"{expected} | {recorded}"
                except Skipped as why:
                    verdict, text = "skipped", str(why)
                except Exception as why:  # noqa: BLE001 - a row that breaks is wrong, and the others are still run
                    verdict, text = "WRONG", f"{type(why).__name__}: {why}"
                self.counts[verdict] += 1
                print(f"{name:<44} {verdict:<8} {text}", flush=True)
        print(", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()) +
              ("; the driver's figures move by themselves: not compared" if self.is_moving else ""))
        return 1 if self.counts["WRONG"] or not self.counts["ok"] else 0


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, help="folder of libkmemshim.so and kmemshim")
    parser.add_argument("--plant", metavar="KIND", choices=KINDS, help="a block of this kind is not spoken of: its row must be WRONG")
    parser.add_argument("--seconds", type=float, default=PROGRAM_SECONDS, help="of each program at most: %(default)s")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="these rows alone, by their names in the table")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        be_program(options.program, options.plant is not None)
    folders = [options.build] if options.build else [here, here.parents[1] / "build"]
    build = next((folder.absolute() for folder in folders if (folder / "libkmemshim.so").exists() and (folder / "kmemshim").exists()), None)
    if build is None:
        parser.error(f"no libkmemshim.so and kmemshim in {' or '.join(map(str, folders))}")
    return Check(build, options).main()


if __name__ == "__main__":
    sys.exit(main())
