# SPDX-License-Identifier: Apache-2.0
"""Holds one Python expert on a GPU and speaks the runner protocol (docs/formats/runner-protocol.md, "On a GPU") on descriptor 3.

    python3 -I forge_expert_runner.py PLUGIN.py DEVICE_CODE_FOLDER
    python3 -I forge_expert_runner.py PLUGIN.py DEVICE_CODE_FOLDER --once FILE     one call from a file, for a profiler: no judge
    python3 forge_expert_runner.py --layout        the messages' sizes and offsets, for the test that compares them with C++

The plugin has make(inputs, outputs) -> callable and describe() -> str; both arguments are dictionaries of tensors by name, in the
definition's order (scalars are Python numbers). The tensors are the judge's own memory, without a copy; inputs are mapped read-only.
The callable writes the outputs in place and returns None, or returns tensors in the outputs' order (None: already in place), which
are copied behind the clock; the record says so. Content at the time of make() means nothing.
"""
import ctypes
import importlib.util
import json
import os
import shutil
import socket
import sys
import tempfile
from ctypes import Structure, c_char, c_double, c_int32, c_int64, c_ubyte, c_uint16, c_uint32, c_uint64, c_void_p

# ---- messages: src/runner/protocol.h and src/runner/cuda_protocol.h; every field at its natural alignment ----

MAGIC, VERSION = 0x52475246, 5
LARGEST = 24 * 1024
LARGEST_FILE = 256 << 20  # of a call
MOST_CALLS = 4096  # of a batch
HELLO, LOAD, READY, GO, PROFILE, IMPORT, FORGET, PREPARE, BATCH = 1, 2, 4, 5, 6, 7, 8, 9, 10
REPLY, SAMPLES, PLACED, DONE = 16, 18, 20, 21
OK, LOAD_FAILED, OUT_OF_MEMORY, REFUSED, BROKEN, FAULTED = range(6)
CUDA_EXPERT = 4
FEATURE_NO_NEW_PRIVS, FEATURE_LIMITS = 1, 16


def _message(name, *fields):
    return type(name, (Structure,), {"_fields_": list(fields)})


Header = _message("Header", ("magic", c_uint32), ("version", c_uint16), ("kind", c_uint16), ("sequence", c_uint32), ("bytes", c_uint32))
_HEADER = ("header", Header)
Load = _message("Load", _HEADER, ("subject", c_uint32), ("core_count", c_uint32), ("cores", c_int32 * 256), ("object_bytes", c_uint64),
                ("entry_count", c_uint32), ("entries", (c_char * 128) * 64), ("plugin", c_char * 1024))
Ready = _message("Ready", _HEADER, ("pattern", c_uint64))
Go = _message("Go", _HEADER)
Profile = _message("Profile", _HEADER, ("seconds", c_double))
Reply = _message("Reply", _HEADER, ("outcome", c_uint32), ("features", c_uint32), ("composed", c_uint32), ("allocates", c_uint32),
                 ("text", c_char * 1024))
Mapping = _message("Mapping", ("name", c_char * 96), ("samples", c_uint32))
HotCode = _message("HotCode", ("address", c_uint64), ("bytes", c_uint32), ("samples", c_uint32), ("code", c_ubyte * 4096))
Samples = _message("Samples", _HEADER, ("outcome", c_uint32), ("samples", c_uint32), ("mapping_count", c_uint32), ("hot_count", c_uint32),
                   ("place_count", c_uint32), ("places", c_uint64 * 256),
                   ("mappings", Mapping * 48), ("hot", HotCode * 3), ("note", c_char * 256))
Place = _message("Place", ("allocation", c_uint64), ("offset", c_uint64))
CudaImport = _message("CudaImport", _HEADER, ("allocation", c_uint64), ("bytes", c_uint64), ("writable", c_uint32), ("reserved", c_uint32))
CudaForget = _message("CudaForget", _HEADER, ("allocation", c_uint64))
CudaLaunch = _message("CudaLaunch", ("entry", c_uint32), ("block", c_uint32), ("cluster", c_uint32), ("flags", c_uint32), ("grid", c_int64),
                      ("shared_bytes", c_int64))
CudaPatch = _message("CudaPatch", ("args_offset", c_uint32), ("reserved", c_uint32), ("place", Place))
CudaZero = _message("CudaZero", ("place", Place), ("bytes", c_uint64))
CudaMap = _message("CudaMap", ("args_offset", c_uint32), ("type", c_uint32), ("rank", c_uint32), ("im2col", c_uint32), ("swizzle", c_uint32),
                   ("l2", c_uint32), ("channels", c_uint32), ("pixels", c_uint32), ("place", Place), ("dims", c_uint64 * 5),
                   ("strides", c_uint64 * 5), ("box", c_uint32 * 5), ("lower", c_int32 * 5), ("upper", c_int32 * 5), ("reserved", c_uint32))
CudaTensor = _message("CudaTensor", ("name", c_char * 64), ("place", Place), ("scalar", c_uint64), ("code", c_ubyte), ("bits", c_ubyte),
                      ("reserved", c_uint16), ("rank", c_int32), ("shape", c_int64 * 8))
CudaPrepare = _message("CudaPrepare", _HEADER, ("slot", c_uint32), ("launch_count", c_uint32), ("patch_count", c_uint32),
                       ("zero_count", c_uint32), ("map_count", c_uint32), ("input_count", c_uint32), ("output_count", c_uint32),
                       ("args_bytes", c_uint32), ("launches", CudaLaunch * 64), ("patches", CudaPatch * 96), ("zeros", CudaZero * 64),
                       ("maps", CudaMap * 24), ("tensors", CudaTensor * 32), ("args", c_ubyte * 3968))
CudaBatch = _message("CudaBatch", _HEADER, ("calls", c_uint32), ("flush_only", c_uint32), ("graphs", c_uint32),
                     ("reserved", c_uint32))
CudaPlaced = _message("CudaPlaced", _HEADER, ("outcome", c_uint32), ("reserved", c_uint32), ("address", c_uint64), ("text", c_char * 256))
CudaDone = _message("CudaDone", _HEADER, ("outcome", c_uint32), ("error", c_int32), ("inside_s", c_double), ("sm_mhz", c_double),
                    ("host_s", c_double), ("hold_expired", c_uint32), ("reserved", c_uint32), ("text", c_char * 256))
MESSAGES = [Header, Load, Ready, Go, Profile, Reply, Samples, CudaImport, CudaForget, CudaTensor, CudaPrepare, CudaBatch, CudaPlaced, CudaDone]
REQUESTS = {LOAD: Load, READY: Ready, GO: Go, PROFILE: Profile, IMPORT: CudaImport, FORGET: CudaForget, PREPARE: CudaPrepare, BATCH: CudaBatch}


def layout():
    """Sizes of all messages, and the offset of the last field of each: a field of another width shows in one of the two."""
    return {m.__name__: [ctypes.sizeof(m), getattr(m, m._fields_[-1][0]).offset] for m in MESSAGES}


# ---- the card ----


class CudaError(Exception):
    def __init__(self, code, what):
        super().__init__(f"{what}: CUDA error {code}")
        self.code = code


class Card:
    """The driver by ctypes in PyTorch's primary context, the judge's memory mapped into it, and the trusted kernels of the vehicle."""

    GUARD = 64 << 20
    NS_HOLD, NS_CLOCK = 2_000_000, 8_000

    def __init__(self, code_folder):
        import torch

        self.torch = torch
        torch.cuda.init()
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        torch.empty(1, device="cuda")  # makes the primary context current
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.mapped = {}  # allocation number -> (address, bytes)
        self.own = []
        self._open_vehicle(os.path.join(code_folder, "runner.sm_90a.cubin"))

    def call(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        if error:
            raise CudaError(error, name)

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    # -- memory of the judge's --

    def map(self, allocation, size, writable, descriptor):
        """Maps it, read-only unless writable, and returns its address. A second import gives an allocation more rights."""
        # CUmemAccessDesc: a device, its number, read (1) or read and write (3).
        access = (ctypes.c_int * 3)(1, 0, 3 if writable else 1)
        if allocation in self.mapped:
            address = self.mapped[allocation][0]
        else:
            handle, reserved = c_uint64(), c_uint64()
            self.call("cuMemImportFromShareableHandle", ctypes.byref(handle), c_void_p(descriptor), 1)
            self.call("cuMemAddressReserve", ctypes.byref(reserved), ctypes.c_size_t(size + 2 * self.GUARD), ctypes.c_size_t(0), c_uint64(0),
                      c_uint64(0))
            address = reserved.value + self.GUARD
            self.call("cuMemMap", c_uint64(address), ctypes.c_size_t(size), ctypes.c_size_t(0), handle, c_uint64(0))
            self.call("cuMemRelease", handle)
            self.mapped[allocation] = (address, size)
        self.call("cuMemSetAccess", c_uint64(address), ctypes.c_size_t(size), access, ctypes.c_size_t(1))
        return address

    def allocate(self, allocation, size):
        """Without a judge: memory of this process, all zero, under the judge's number."""
        memory = self.torch.zeros(size, dtype=self.torch.uint8, device="cuda")
        self.own.append(memory)
        self.mapped[allocation] = (memory.data_ptr(), size)
        return memory.data_ptr()

    def draw(self, tensor):
        """N(0,1): what a card does, and how fast, depends on its operands' bits. Other types than floating-point ones stay zero."""
        if tensor.dtype in (self.torch.float16, self.torch.bfloat16, self.torch.float32, self.torch.float64):
            tensor.normal_()

    def profiled(self, run):
        self.synchronize()
        self.call("cuProfilerStart")
        result = run()
        self.synchronize()
        self.call("cuProfilerStop")
        return result

    def unmap(self, allocation):
        address, size = self.mapped.pop(allocation)
        self.call("cuCtxSynchronize")
        self.call("cuMemUnmap", c_uint64(address), ctypes.c_size_t(size))
        self.call("cuMemAddressFree", c_uint64(address - self.GUARD), ctypes.c_size_t(size + 2 * self.GUARD))

    # (DLPack type code, bits) -> (type string, PyTorch's name when the string cannot say it)
    TYPES = {(2, 64): ("<f8", None), (2, 32): ("<f4", None), (2, 16): ("<f2", None), (4, 16): ("<i2", "bfloat16"), (0, 64): ("<i8", None),
             (0, 32): ("<i4", None), (0, 16): ("<i2", None), (0, 8): ("|i1", None), (1, 8): ("|u1", None), (6, 8): ("|u1", "bool"),
             (10, 8): ("|u1", "float8_e4m3fn"), (12, 8): ("|u1", "float8_e5m2")}

    def tensor(self, t):
        """A view of the judge's memory."""
        if (t.code, t.bits) not in self.TYPES:
            raise ValueError(f"'{t.name.decode()}' has a type that PyTorch does not know")
        kind, other = self.TYPES[(t.code, t.bits)]
        address = self.mapped[t.place.allocation][0] + t.place.offset
        holder = type("Memory", (), {})()
        holder.__cuda_array_interface__ = {"shape": tuple(t.shape[: t.rank]), "typestr": kind, "data": (address, False), "version": 3}
        view = self.torch.as_tensor(holder, device="cuda")
        assert view.data_ptr() == address, "PyTorch copied the judge's memory"
        return view.view(getattr(self.torch, other)) if other else view

    # -- the vehicle: flush, hold, events, clock --

    def _open_vehicle(self, path):
        with open(path, "rb") as file:
            image = file.read()
        module = c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.kernels = {}
        for entry in ("forge_fill_random", "forge_flush", "forge_hold", "forge_clock"):
            self.kernels[entry] = c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(self.kernels[entry]), module, entry.encode())
        self.sms, self.flush_bytes = self.attribute(16), 4 * self.attribute(38)
        self.flushed = self.torch.empty(self.flush_bytes + 256, dtype=self.torch.uint8, device="cuda")
        self.marks = self.torch.zeros(2, dtype=self.torch.int64, device="cuda")
        # Host memory that the hold kernel watches: [0] go on, [1] it gave up waiting.
        self.host = c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(self.host), ctypes.c_size_t(64), 2)  # mapped
        self.flags = ctypes.cast(self.host, ctypes.POINTER(c_uint32))
        seen = c_uint64()
        self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(seen), self.host, 0)
        self.flags_seen = seen.value
        self.events = [c_void_p(), c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.launch("forge_fill_random", 4 * self.sms, 256, self.flushed.data_ptr(), self.flush_bytes, 0x9E3779B97F4A7C15)
        self.call("cuCtxSynchronize")

    def launch(self, entry, grid, block, *numbers):
        packed = (c_uint64 * len(numbers))(*numbers)
        pointers = (c_void_p * 1)(ctypes.addressof(packed))
        self.call("cuLaunchKernel", self.kernels[entry], grid, 1, 1, block, 1, 1, 0, c_void_p(self.stream.cuda_stream), pointers, None)

    def flush(self):
        self.launch("forge_flush", 4 * self.sms, 512, self.flushed.data_ptr(), self.flush_bytes, self.flushed.data_ptr() + self.flush_bytes)

    def unpin(self):
        """Both, and before the flush: lines that were pinned earlier survive any one of them alone."""
        self.call("cuCtxSetLimit", 6, ctypes.c_size_t(0))  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
        self.call("cuCtxResetPersistingL2Cache")

    def recorded(self, work):
        """`work` as a CUDA graph: a callable that plays it and returns what work() had returned. None where it cannot be recorded."""
        graph = self.torch.cuda.CUDAGraph()
        try:
            with self.torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                result = work()
        except Exception:  # it waits for the card, or allocates in a way that a graph cannot hold
            self.synchronize()
            return None

        def play():
            graph.replay()
            return result

        return play

    def timed(self, run):
        """Returns what run() returned, seconds between the events, SM MHz, host seconds, whether the hold expired."""
        import time

        stream = c_void_p(self.stream.cuda_stream)
        self.unpin()
        self.flags[0] = self.flags[1] = 0
        self.flush()
        self.launch("forge_hold", 1, 1, self.flags_seen, self.flags_seen + 4, self.NS_HOLD)
        start = time.monotonic()
        self.call("cuEventRecord", self.events[0], stream)
        try:
            result = run()
        finally:
            self.flags[0] = 1
        self.call("cuEventRecord", self.events[1], stream)
        host = time.monotonic() - start
        self.launch("forge_clock", 1, 1, self.marks.data_ptr(), self.NS_CLOCK)
        self.call("cuCtxSynchronize")
        milliseconds = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), self.events[0], self.events[1])
        cycles, nanoseconds = self.marks.tolist()
        return result, milliseconds.value * 1e-3, 1e3 * cycles / max(nanoseconds, 1), host, int(self.flags[1] != 0)

    def synchronize(self):
        self.call("cuCtxSynchronize")


# ---- the expert ----


def load_plugin(path):
    spec = importlib.util.spec_from_file_location("forge_python_expert", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner:
    """Answers one request after the other. `make_card` is Card, or a stand-in for tests."""

    def __init__(self, plugin_path, make_card):
        self.plugin_path, self.make_card = plugin_path, make_card
        self.card = self.plugin = self.run = self.recorded = None
        self.outputs, self.copies = [], False

    def text(self):
        how = self.plugin.describe()
        if self.copies:
            how += "; results copied to the outputs behind the clock"
        return how

    def load(self, request, _):
        if request.subject != CUDA_EXPERT:
            return Reply(outcome=LOAD_FAILED, text=b"only an expert can be held in Python")
        self.card = self.make_card()
        self.plugin = load_plugin(self.plugin_path)
        return Reply(features=harden(), text=self.text().encode()[:1023])

    def place(self, request, descriptors):
        if len(descriptors) != 1:
            return CudaPlaced(outcome=BROKEN, text=b"an import has one descriptor")
        return CudaPlaced(address=self.card.map(request.allocation, request.bytes, bool(request.writable), descriptors[0]))

    def forget(self, request, _):
        self.run, self.recorded, self.outputs = None, None, []
        self.card.unmap(request.allocation)
        return Reply()

    def prepare(self, request, _):
        if request.slot != 0:
            return Reply(text=b"an expert repeats slot 0")
        named = [(t.name.decode(), self.scalar(t) if t.place.allocation == 0 else self.card.tensor(t))
                 for t in request.tensors[: request.input_count + request.output_count]]
        inputs, outputs = dict(named[: request.input_count]), dict(named[request.input_count :])
        self.outputs, self.copies, self.recorded = list(outputs.values()), False, None
        self.run = self.plugin.make(inputs, outputs)
        for _ in range(3):  # compilers and tuners at work
            self.copies = self.deliver(self.run())
            self.card.synchronize()
        return Reply(composed=int(getattr(self.plugin, "COMPOSED", False)), allocates=int(self.copies), text=self.text().encode()[:1023])

    @staticmethod
    def scalar(t):
        raw = ctypes.c_uint64(t.scalar)
        kind = {(2, 64): c_double, (2, 32): ctypes.c_float, (0, 64): c_int64, (0, 32): c_int32}.get((t.code, t.bits), c_uint64)
        return ctypes.cast(ctypes.byref(raw), ctypes.POINTER(kind)).contents.value

    def deliver(self, result):
        """Copies what is not in place yet. True when there was anything."""
        if result is None:
            return False
        tensors = result if isinstance(result, (tuple, list)) else (result,)
        if len(tensors) != len(self.outputs):
            raise ValueError(f"the expert returned {len(tensors)} results for {len(self.outputs)} outputs")
        copied = False
        for output, tensor in zip(self.outputs, tensors):
            if tensor is None:
                continue
            if tuple(tensor.shape) != tuple(output.shape):
                raise ValueError(f"the expert returned a shape of {tuple(tensor.shape)}, not {tuple(output.shape)}")
            output.copy_(tensor)
            copied = True
        return copied

    def ready(self, *_):
        return Reply()

    def go(self, *_):
        if self.run is None:
            return CudaDone(outcome=BROKEN, text=b"not prepared")
        result, seconds, mhz, host, expired = self.card.timed(self.run)
        self.deliver(result)
        self.card.synchronize()
        return CudaDone(inside_s=seconds, sm_mhz=mhz, host_s=host, hold_expired=expired)

    def flushed_run(self):
        self.card.flush()
        return self.run()

    def batch(self, request, _):
        # Queued from Python call by call, a kernel of 30 us waits for the host, and a batch's time is the host's.
        if self.recorded is None:
            self.recorded = [self.card.recorded(work) for work in (self.flushed_run, self.card.flush)]
        play = self.recorded[1 if request.flush_only else 0]
        if self.recorded[0] is None:
            raise NotImplementedError("its call cannot be recorded as a CUDA graph, and queued by Python a batch tells the host's time")
        if request.calls > MOST_CALLS:
            raise NotImplementedError(f"a batch of {request.calls} calls, and {MOST_CALLS} are the most")
        self.card.unpin()
        result = None
        for _ in range(request.calls):
            result = play()
        self.card.synchronize()
        self.deliver(None if request.flush_only else result)
        self.card.synchronize()
        return CudaDone()

    def profile(self, *_):
        return Samples(note=b"a Python expert is not sampled")

    def answer(self, kind, request, descriptors):
        handlers = {LOAD: (self.load, Reply), READY: (self.ready, Reply), GO: (self.go, CudaDone), PROFILE: (self.profile, Samples),
                    IMPORT: (self.place, CudaPlaced), FORGET: (self.forget, Reply), PREPARE: (self.prepare, Reply),
                    BATCH: (self.batch, CudaDone)}
        handler, answer = handlers[kind]
        try:
            return handler(request, descriptors)
        except CudaError as e:
            outcome = OUT_OF_MEMORY if e.code == 2 else FAULTED if kind in (GO, BATCH) else BROKEN
            extra = {"error": e.code} if answer is CudaDone else {}
            return answer(outcome=outcome, text=str(e).encode()[:255], **extra)
        except (ImportError, NotImplementedError) as e:
            return answer(outcome=LOAD_FAILED if kind == LOAD else REFUSED, text=f"{type(e).__name__}: {e}".encode()[:255])
        except Exception as e:  # whatever a library throws
            memory = type(e).__name__ == "OutOfMemoryError"
            outcome = OUT_OF_MEMORY if memory else {LOAD: LOAD_FAILED, PREPARE: REFUSED, GO: FAULTED, BATCH: FAULTED}.get(kind, BROKEN)
            note = {"note" if answer is Samples else "text": f"{type(e).__name__}: {e}".encode()[:255]}
            return answer(outcome=outcome, **note)


class OnceRunner(Runner):
    """The call of a file, for a profiler: memory and content of its own, and one run between the profiler's start and stop."""

    def place(self, request, _):
        return CudaPlaced(address=self.card.allocate(request.allocation, request.bytes))

    def prepare(self, request, _):
        for t in request.tensors[: request.input_count]:
            if t.place.allocation:
                self.card.draw(self.card.tensor(t))
        return super().prepare(request, _)

    def go(self, *_):
        self.card.profiled(self.run)
        return CudaDone()

    def make_call(self, path):
        """None, or what is wrong."""
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            return f"{path} has more than {LARGEST_FILE} bytes"
        wanted = (LOAD,)
        while wanted:
            if len(content) < ctypes.sizeof(Header):
                return f"the file ends where a message should begin ({len(content)} bytes are left)"
            header = Header.from_buffer_copy(content)
            known = REQUESTS.get(header.kind)
            if header.magic != MAGIC or header.version != VERSION or header.kind not in wanted or header.bytes != ctypes.sizeof(known):
                return f"not the message that is expected: magic {header.magic:#x}, version {header.version}, kind {header.kind}"
            if len(content) < header.bytes:
                return f"the file ends within a message: {len(content)} of {header.bytes} bytes"
            answer = self.answer(header.kind, known.from_buffer_copy(content), [])
            if answer.outcome != OK:
                return answer.text.decode(errors="replace")
            content = content[header.bytes :]
            wanted = () if header.kind == PREPARE else (IMPORT, PREPARE)
        if content:
            return f"{len(content)} bytes stand behind the last message"
        answer = self.answer(GO, Go(), [])
        if answer.outcome != OK:
            return answer.text.decode(errors="replace")
        print("made: " + self.text(), flush=True)
        return None


KIND_OF = {Reply: REPLY, CudaPlaced: PLACED, CudaDone: DONE, Samples: SAMPLES}


def send(channel, message, kind, sequence):
    message.header = Header(MAGIC, VERSION, kind, sequence, ctypes.sizeof(message))
    channel.sendall(bytes(message))


def serve(channel, runner):
    """Until the judge closes the channel, or says something that is no request."""
    send(channel, Go(), HELLO, 0)
    while True:
        packet, descriptors, _, _ = socket.recv_fds(channel, LARGEST, 4)
        if len(packet) < ctypes.sizeof(Header):
            return
        header = Header.from_buffer_copy(packet)
        known = REQUESTS.get(header.kind)
        if header.magic != MAGIC or header.version != VERSION or known is None or not len(packet) == ctypes.sizeof(known) == header.bytes:
            return
        answer = runner.answer(header.kind, known.from_buffer_copy(packet), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        send(channel, answer, KIND_OF[type(answer)], header.sequence)


def harden():
    """What a process can still deny itself and yet run a compiler: new privileges and core files."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    denied = ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    return FEATURE_LIMITS | (FEATURE_NO_NEW_PRIVS if denied else 0)


def main(arguments):
    if arguments == ["--layout"]:
        print(json.dumps(layout()))
        return 0
    if len(arguments) != 2 and not (len(arguments) == 4 and arguments[2] == "--once"):
        print(__doc__, file=sys.stderr)
        return 2
    plugin, code_folder = arguments[:2]
    caches = tempfile.mkdtemp(prefix="forge-expert-")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(caches, "inductor"))
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(caches, "triton"))
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes
    try:
        if len(arguments) == 4:
            ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG: a profiler that is killed leaves nothing on the card
            problem = OnceRunner(plugin, lambda: Card(code_folder)).make_call(arguments[3])
            if problem:
                print(f"forge_expert_runner.py --once: {problem}", file=sys.stderr)
            return 1 if problem else 0
        serve(socket.socket(fileno=3), Runner(plugin, lambda: Card(code_folder)))
    finally:
        shutil.rmtree(caches, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
