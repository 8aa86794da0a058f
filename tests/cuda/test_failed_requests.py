"""
A device that has no more memory: what it held at that very moment, what became of the request, and the one sentence that names the
cause. The oracles are the driver double's ledger and the double of libc10, read by the program itself when it is refused.
"""
import re
import json
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

BUILT = harness.BUILD / "tests" / "cuda"
PYTHON = "/usr/bin/python3"
MIB = 1 << 20

# In front of every program: tensors that release themselves, and what the doubles say of the moment.
BEGIN = """\
import ctypes, json, os, struct, sys
ctypes.CDLL("libcuda.so.1").cuInit(0)
torch = ctypes.CDLL("libc10_cuda.so")
for function in (torch.c10_cuda_allocate, torch.c10_cuda_pin):
    function.restype = ctypes.c_void_p
torch.c10_cuda_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
torch.c10_cuda_pin.argtypes = [ctypes.c_size_t]
torch.c10_cuda_release.argtypes = [ctypes.c_void_p]

class Refused(Exception):
    pass

class Tensor:
    def __init__(self, addr):
        self.addr = addr
        if addr is None:
            raise Refused("CUDA out of memory")
    def __del__(self):
        if self.addr:
            torch.c10_cuda_release(self.addr)

def taker(name):
    library = ctypes.CDLL(name)
    library.library_take.restype, library.library_take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.library_give_back.argtypes = [ctypes.c_void_p]
    return library

def moment():
    told = ctypes.c_int64()
    ctypes.CDLL("libc10.so").c10_told(ctypes.byref(ctypes.c_long()), ctypes.byref(told), ctypes.byref(ctypes.c_long()))
    rows = struct.unpack("<96Q", open(os.environ["KMEMDOUBLE_LEDGER"], "rb").read()[:768])
    live = lambda row: rows[6 * row] - rows[6 * row + 1]
    print(json.dumps({"tensors": told.value, "device": live(8), "pinned": live(5)}), flush=True)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program over the doubles: (completed process, its moments)."""
    def start(text, status=1, **more):
        script = tmp_path / "program.py"
        script.write_text(BEGIN + text)
        env = harness.shim_env(tmp_path / "out", KMEMDOUBLE_LEDGER=tmp_path / "ledger",
                               LD_LIBRARY_PATH=f"{BUILT / 'torch2'}:{BUILT / 'lib'}:{BUILT / 'takers'}", **more)
        done = harness.run([PYTHON, script], env)
        assert done.returncode == status, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    return start


def line_of(tmp_path, text):
    return next(number for number, line in enumerate((tmp_path / "program.py").read_text().splitlines(), 1) if text in line)


TRAIN = """
libraries = [taker(name) for name in ("libcublas.so.13", "libcudnn.so.9", "libnccl.so.2")]
workspaces = [library.library_take((number + 1) << 20) for number, library in enumerate(libraries)]
pinned = torch.c10_cuda_pin(3000000)

def train():
    losses = []
    while True:
        activations = [Tensor(torch.c10_cuda_allocate(n, 0)) for n in (300000, 100000)]
        loss = torch.c10_cuda_allocate(40960, 0)
        losses.append(Tensor(loss))

try:
    train()
except Refused:
    moment()
    if ENDING == "kill":
        os.kill(os.getpid(), 9)
for library, workspace in zip(libraries, workspaces):
    library.library_give_back(workspace)
moment()
if ENDING == "exit":
    os._exit(1)
after = [Tensor(torch.c10_cuda_allocate(40960, 0)) for _ in range(20)]
"""


@pytest.mark.parametrize("ending, status", [("exit", 1), ("kill", -signal.SIGKILL), ("go on", 0)])
def test_the_device_as_it_was_when_it_refused(ending, status, run, tmp_path):
    """Whatever the exception released on its way out, and whatever the program did afterwards."""
    moments = run(f"ENDING = {ending!r}\n" + TRAIN, status, KMEMDOUBLE_CAPACITY=64 * MIB, KMEMDOUBLE_OTHERS=5000000)
    then = moments[0]
    assert ending == "kill" or moments[1]["tensors"] == 0 and moments[1]["device"] < then["device"]

    document = harness.report("leaks", tmp_path / "out", "--domain", "cuda:0")
    request = document["refused_requests"][-1]
    held = request["held"]
    assert (request["domain"], request["device"]) == ("cuda:0/tensors", "cuda:0")
    assert request["state"] == ("recovered" if ending == "go on" else "fatal")
    assert (held["live_bytes"], held["tensor_bytes"]) == (then["device"], then["tensors"])
    assert (held["pinned_bytes"], held["managed_bytes"]) == (4 * MIB, 0) and then["pinned"] == 4 * MIB
    assert request["total_bytes"] == 64 * MIB and request["free_bytes"] == 64 * MIB - 5000000 - then["device"]
    assert held["untracked_bytes"] == 5000000
    parts = {part["name"]: part["live_bytes"] for part in held["parts"]}
    assert (parts["cuBLAS"], parts["cuDNN"], parts["NCCL"]) == (MIB, 2 * MIB, 3 * MIB)
    assert parts["tensors"] == then["tensors"] and sum(parts.values()) == then["device"]
    where = line_of(tmp_path, "loss = torch.c10_cuda_allocate")
    assert [held["lines"][0]["where"]["line"], held["lines"][0]["domain"]] == [where, "cuda:0/tensors"]

    if ending == "go on":
        assert document["verdict"]["cause"] == "exited"
        assert "refused" not in document["verdict"]["text"]
        assert not document["totals"]["cuda:0"]["is_at_refused_request"]
        assert document["totals"]["cuda:0/tensors"]["live_bytes"] == 20 * 40960
        return
    for command in ("peak", "leaks"):
        first = harness.report(command, tmp_path / "out", "--domain", "cuda:0")["lines"][0]
        assert (first["domain"], first["where"]["line"]) == ("cuda:0/tensors", where)
    assert first["leak"]["class"] == "leak" and first["live_bytes"] == held["lines"][0]["live_bytes"]
    assert document["verdict"]["cause"] == "device-memory"
    assert "it keeps 40.0 KiB each time it runs" in document["verdict"]["text"]
    assert "loss.item()" in document["verdict"]["next"]
    assert document["totals"]["cuda:0"]["live_bytes"] == then["device"]
    assert document["totals"]["cuda:0"]["is_at_refused_request"] == (ending == "exit")


def test_a_request_that_is_met_later_ended_nothing(run, tmp_path):
    """The cache is given back, and it is tried again. What ends the program afterwards is something else."""
    run("""
library = taker("libcublas.so.13")
cache = library.library_take(40 << 20)
for attempt in range(2):
    assert library.library_take(30 << 20) is None
library.library_give_back(cache)
assert library.library_take(30 << 20) is not None
sys.exit("something else")
""", KMEMDOUBLE_CAPACITY=64 * MIB)
    document = harness.report("why", tmp_path / "out")
    assert [request["state"] for request in document["refused_requests"]] == ["recovered", "recovered"]
    assert document["refused_requests"][0]["held"]["live_bytes"] == 40 * MIB
    assert document["verdict"]["cause"] == "failed"
    assert "2 requests were refused earlier, but the program recovered" in document["verdict"]["text"]
    text = harness.run([harness.KMEMSHIM, "report", tmp_path / "out"]).stdout
    assert re.search(r"30\.0 MiB  cuda:0 +recovered", text) and "2 times" in text


def test_a_traceback_that_keeps_tensors(run, tmp_path):
    """The first exception is kept, with the frames of its step; the second one ends the program."""
    run("""
def step(size):
    activations = [Tensor(torch.c10_cuda_allocate(n, 0)) for n in (2 << 20, 3 << 20)]
    return len(activations), Tensor(torch.c10_cuda_allocate(size, 0))

for number in range(50):
    step(20 << 20)
try:
    step(45 << 20)
except Refused as error:
    kept = error
for number in range(60):
    step(20 << 20)
step(46 << 20)
""", KMEMDOUBLE_CAPACITY=64 * MIB)
    verdict = harness.report("why", tmp_path / "out")["verdict"]
    assert verdict["cause"] == "device-memory"
    assert "5.0 MiB of the tensors were those of an earlier step" in verdict["text"] and "let go of the exception" in verdict["next"]


def test_a_framework_that_takes_most_of_the_device(run, tmp_path):
    run("""
library = taker("xla_extension.so")
library.library_take(50 << 20)
sys.exit(library.library_take(20 << 20) is None)
""", KMEMDOUBLE_CAPACITY=64 * MIB)
    verdict = harness.report("why", tmp_path / "out")["verdict"]
    assert "That is one block, 78 % of the device, as when" in verdict["text"] and "XLA_PYTHON_CLIENT_PREALLOCATE=false" in verdict["next"]


def test_a_device_that_others_fill(run, tmp_path):
    run("""
kept = [Tensor(torch.c10_cuda_allocate(1 << 20, 0)) for _ in range(20)]
""", KMEMDOUBLE_CAPACITY=64 * MIB, KMEMDOUBLE_OTHERS=48 * MIB)
    verdict = harness.report("why", tmp_path / "out")["verdict"]
    assert "48.0 MiB of what is in use there is not this program's" in verdict["text"] and "nvidia-smi" in verdict["next"]


@pytest.mark.parametrize("pool, refuses", [("pool.value", True), ("pool.value", False), ("None", False)],
                         ids=["of_the_program", "of_the_program_beside", "of_the_device"])
def test_what_pools_keep_is_nobody_elses(pool, refuses, run, tmp_path):
    """What was given back to a pool stays the pool's; who asks the driver for memory is refused it. Pools that are gone keep nothing."""
    run(f"""
runtime = ctypes.CDLL("libcudart.so.13")
pool, addr = ctypes.c_void_p(), ctypes.c_void_p()
for number in range(100): # more than are noted
    assert runtime.cudaMemPoolCreate(ctypes.byref(pool), struct.pack("<4i", 1, 0, 1, 0)) == 0
    assert runtime.cudaMallocFromPoolAsync(ctypes.byref(addr), ctypes.c_size_t(5 << 20), pool, None) == 0
    assert runtime.cudaFreeAsync(addr, None) == 0
    assert runtime.cudaMemPoolDestroy(pool) == 0
assert runtime.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
if {pool} is not None:
    assert runtime.cudaMemPoolCreate(ctypes.byref(pool), struct.pack("<4i", 1, 0, 1, 0)) == 0
for size, is_kept in ((20 << 20, False), (10 << 20, True)):
    assert runtime.cudaMallocFromPoolAsync(ctypes.byref(addr), ctypes.c_size_t(size), pool, None) == 0
    is_kept or runtime.cudaFreeAsync(addr, None)
allocate = runtime.cudaMallocFromPoolAsync if {refuses} else runtime.cudaMalloc
sys.exit(allocate(ctypes.byref(addr), ctypes.c_size_t(55 << 20), *((pool, None) if {refuses} else ())))
""", 2, KMEMDOUBLE_CAPACITY=64 * MIB, KMEMDOUBLE_OTHERS=3 * MIB, KMEMDOUBLE_POOLS_KEEP=1)
    request, = harness.report("why", tmp_path / "out")["refused_requests"]
    held = request["held"]
    # Of the 20 MiB that were given back, 10 are in use again.
    assert (held["live_bytes"], held["pool_kept_bytes"], held["untracked_bytes"]) == (10 * MIB, 10 * MIB, 3 * MIB)
    text = harness.run([harness.KMEMSHIM, "report", tmp_path / "out"]).stdout
    assert "10.0 MiB kept by the driver's pools (cudaMallocAsync)" in harness.unwrapped(text)


def test_a_device_that_pools_fill(run, tmp_path):
    """A release threshold keeps what nobody has any more: the verdict names it, and what gives it back."""
    run("""
runtime = ctypes.CDLL("libcudart.so.13")
addr = ctypes.c_void_p()
for number in range(3):
    assert runtime.cudaMallocAsync(ctypes.byref(addr), ctypes.c_size_t(50 << 20), None) == 0
    assert runtime.cudaFreeAsync(addr, None) == 0
sys.exit(runtime.cudaMalloc(ctypes.byref(addr), ctypes.c_size_t(30 << 20)))
""", 2, KMEMDOUBLE_CAPACITY=64 * MIB, KMEMDOUBLE_POOLS_KEEP=1)
    document = harness.report("why", tmp_path / "out")
    assert document["verdict"]["cause"] == "device-memory" and document["refused_requests"][0]["held"]["pool_kept_bytes"] == 50 * MIB
    assert "Another 50.0 MiB lay unused in the driver's pools (cudaMallocAsync): enough for the request" in document["verdict"]["text"]
    assert "cudaMemPoolTrimTo" in document["verdict"]["next"]


def test_pinned_memory_is_rounded_up(run, tmp_path):
    """The host had no more of it: no device is to blame."""
    run("""
pinned = [torch.c10_cuda_pin(17 << 20) for _ in range(4)]
sys.exit(pinned[3] is None)
""", KMEMDOUBLE_FAIL_NTH=4)
    document = harness.report("why", tmp_path / "out")
    request, = document["refused_requests"]
    assert (request["domain"], request["device"], request["held"]["pinned_bytes"]) == ("cuda/pinned", None, 96 * MIB)
    assert document["verdict"]["cause"] == "request-refused"
    assert "96.0 MiB of it is in blocks of powers of two" in document["verdict"]["text"]
    assert "pinned_max_round_threshold_mb" in document["verdict"]["next"]


def test_every_level_has_its_rows(run, tmp_path):
    run("""
kept = [Tensor(torch.c10_cuda_allocate(1 << 20, device)) for device in (0, 1) for _ in range(3)]
pinned = torch.c10_cuda_pin(3000000)
library = taker("libnccl.so.2").library_take(5 << 20)
os._exit(0)
""", 0, KMEMDOUBLE_DEVICES=2)
    levels = {"cuda": {"cuda:0", "cuda:0/tensors", "cuda:1", "cuda:1/tensors", "cuda/pinned"}, "cuda:0": {"cuda:0", "cuda:0/tensors"},
              "cuda:1": {"cuda:1", "cuda:1/tensors"}, "cuda:0/tensors": {"cuda:0/tensors"}, "cuda/pinned": {"cuda/pinned"}}
    for wanted, command in [("cuda", "sites"), ("cuda:1", "peak"), ("cuda:0", "leaks"), ("cuda:0/tensors", "report"), ("cuda/pinned", "peak")]:
        document = harness.report(command, tmp_path / "out", "--domain", wanted)
        assert {line["domain"] for line in document["lines"]} == levels[wanted], command
        assert {site["domain"] for site in document["sites"]} == levels[wanted], command
        for name in levels[wanted]: # what a domain holds is what its lines hold
            assert sum(line["live_bytes"] for line in document["lines"] if line["domain"] == name) == \
                document["totals"][name]["live_bytes"] > 0
    text = harness.run([harness.KMEMSHIM, "peak", tmp_path / "out", "--domain", "cuda"]).stdout
    assert all(f" {name} " in text for name in levels["cuda"]), text
    text = harness.run([harness.KMEMSHIM, "report", tmp_path / "out"]).stdout
    page = text[text.index("Held on devices at the peak"):text.index("Still held on devices, leaks first")]
    assert "cuda:0/tensors  program.py" in page and "cuda:1/tensors  program.py" in page
    assert "cuda:0/tensors  program.py" in text[text.index("Still held on devices, leaks first"):]
    missing = harness.run([harness.KMEMSHIM, "peak", tmp_path / "out", "--domain", "cuda:2"])
    assert missing.returncode == 2 and "this capture has" in missing.stderr


def test_every_command_takes_a_device(run, tmp_path):
    """What is said, compared and written is of that device alone; names that are none are refused in one line with those that are."""
    def kmemshim(*words, **more):
        return harness.run([harness.KMEMSHIM, *words], harness.plain_env(**more))

    def refused(words, *names):
        done = kmemshim(*words, "--domain", "cuda:7")
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), words
        assert all(name in done.stderr for name in ("--domain cuda:7", *names)), done.stderr

    run("""
kept = [Tensor(torch.c10_cuda_allocate(1 << 20, device)) for device in (0, 1) for _ in range(3)]
losses = [Tensor(torch.c10_cuda_allocate(300000, 1)) for number in range(40)]
""", 0, KMEMDOUBLE_DEVICES=2)
    out, base = tmp_path / "out", tmp_path / "base.json"
    for name, bytes_there in (("cuda:0", 3 * MIB), ("cuda:1", 3 * MIB + 40 * 300032)):
        verdict = harness.report("why", out, "--domain", name)["verdict"]
        assert verdict["domain"] == name and f" of {name} " in verdict["text"] and " of heap " not in verdict["text"]
        assert f"{bytes_there / MIB:.1f} MiB tensors" in verdict["text"]
    assert "It looks like a leak" in verdict["text"] and "loss.item()" in verdict["next"]
    done = kmemshim("baseline", out, "-o", base, "--domain", name)
    assert (done.returncode, done.stderr) == (0, f"kmemshim: written: {base}, from 1 run\n")
    written = json.loads(base.read_text())
    assert written["domain"] == name
    assert {row["domain"] for row in written["domains"] + written["sites"]} == {name, f"{name}/tensors"}
    for words in ([], ["--domain", f"{name}/tensors"]):
        done = kmemshim("check", out, "--baseline", base, *words)
        assert done.returncode == 0 and f" of {words[-1] if words else name} compared" in done.stdout
        assert " heap " not in done.stdout
    other = kmemshim("check", out, "--baseline", base, "--domain", "heap")
    assert other.returncode == 2 and f"is of {name} alone" in other.stderr
    kmemshim("baseline", out, "-o", base)
    for command in ("why", "report", "peak", "leaks", "sites"):
        refused([command, out], "heap", "cuda:0", "cuda:1/tensors")
    refused(["check", out, "--baseline", base], "heap", "cuda:1")
    refused(["baseline", out, "-o", tmp_path / "none.json"], "heap", "cuda:1")
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize("domain, tables", [("cuda:0", {"cuda:0"}), ("cuda:1", {"heap", "cuda:0"}), ("cuda:x", None)])
def test_the_launcher_takes_a_device(domain, tables, tmp_path):
    """Of what is shown after the run; one that was not used is told with all lines, and no name at all before anything runs."""
    env = harness.plain_env(LD_LIBRARY_PATH=BUILT / "lib", KMEMDOUBLE_LEDGER=tmp_path / "ledger")
    done = harness.run([harness.KMEMSHIM, "run", "--domain", domain, "-o", tmp_path / "out", "--", BUILT / "linked", "leak"], env)

    if tables is None:
        assert (done.returncode, done.stderr.count("\n"), (tmp_path / "out").exists()) == (2, 1, False)
        assert "heap" in done.stderr and "cuda:0/tensors" in done.stderr
        return
    assert done.returncode == 0 and "\nHeld " in done.stderr and "cuda:0 held at most" in harness.unwrapped(done.stderr)
    assert ("--domain cuda:1: nothing was recorded there; this capture has" in done.stderr) == (domain == "cuda:1")


@pytest.mark.parametrize("devices", [1, 2])
def test_processes_that_use_devices(devices, run, tmp_path):
    """A worker and its parent on one device, or each on its own: figures are sums where they are, and say so."""
    run(f"DEVICES = {devices}" + """
import subprocess
if sys.argv[1:] == ["worker"]:
    kept = [Tensor(torch.c10_cuda_allocate(1 << 20, 0)) for _ in range(20)]
    os._exit(0)
subprocess.run([sys.executable, __file__, "worker"], check=True)
kept = [Tensor(torch.c10_cuda_allocate(1 << 20, DEVICES - 1)) for _ in range(80)]
""", KMEMDOUBLE_CAPACITY=64 * MIB, KMEMDOUBLE_DEVICES=2)
    last = f"cuda:{devices - 1}"
    document = harness.report("leaks", tmp_path / "out")
    live = {name: total["live_bytes"] // MIB for name, total in document["totals"].items() if "tensors" in name}
    own = 44 if devices == 1 else 64  # of the process that was refused
    assert live == ({"cuda:0/tensors": 64} if devices == 1 else {"cuda:0/tensors": 20, "cuda:1/tensors": 64})
    assert document["refused_requests"][-1]["held"]["tensor_bytes"] == own * MIB
    assert all(total["concurrent_live_bytes"] <= total["live_bytes"] for total in document["totals"].values())
    text = document["verdict"]["text"]
    assert f"Its processes, summed, held 64.0 MiB of {last} (the one that was refused {own}.0 MiB then), 64.0 MiB of it tensors" in text
    page = harness.run([harness.KMEMSHIM, "report", tmp_path / "out"]).stdout
    assert "Held on devices at the peak, summed over 2 processes" in page
    other = harness.report("why", tmp_path / "out", "--domain", "cuda:0")["verdict"]["text"]
    assert devices == 1 or "One of its 2 processes held 20.0 MiB of cuda:0 at its end, its peak." in other
