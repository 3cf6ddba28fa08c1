# SPDX-License-Identifier: Apache-2.0
"""The Python expert's runner against a stand-in for the card: what it answers to a judge, right and wrong requests alike."""
import contextlib
import ctypes
import importlib.util
import io
import os
import socket
import sys
import tempfile
import threading

spec = importlib.util.spec_from_file_location("runner", sys.argv[1])
r = importlib.util.module_from_spec(spec)
spec.loader.exec_module(r)


class FakeTensor:
    def __init__(self, shape):
        self.shape, self.value = tuple(shape), None

    def copy_(self, other):
        self.value = other.value


class FakeCard:
    last = None

    def __init__(self):
        self.mapped, self.flushes, self.tensors, self.log = {}, 0, {}, []
        self.records, self.recordings, self.plays, self.unpinned = True, 0, 0, 0
        FakeCard.last = self

    def map(self, allocation, size, writable, descriptor):
        os.fstat(descriptor)  # open
        self.mapped[allocation] = (0x7000 * allocation, size, writable)
        return 0x7000 * allocation

    def unmap(self, allocation):
        del self.mapped[allocation]

    def tensor(self, t):
        if t.place.allocation not in self.mapped:
            raise KeyError(f"allocation {t.place.allocation}")
        return self.tensors.setdefault(t.name.decode(), FakeTensor(t.shape[: t.rank]))

    def allocate(self, allocation, size):
        self.mapped[allocation] = (0x9000 * allocation, size, True)
        return 0x9000 * allocation

    def draw(self, tensor):
        tensor.value = "drawn"

    def profiled(self, run):
        self.log.append("profiled")
        return run()

    def flush(self):
        self.flushes += 1

    def unpin(self):
        self.unpinned += 1

    def synchronize(self):
        pass

    def recorded(self, work):
        if not self.records:
            return None
        self.recordings += 1

        def play():
            self.plays += 1
            return work()

        return play

    def timed(self, run):
        return run(), 25e-6, 1755.0, 3e-6, 0


PLUGIN = """
class Result:
    def __init__(self, shape, value): self.shape, self.value = shape, value
calls = 0
def make(inputs, outputs):
    if inputs['factor'] == 7: raise NotImplementedError('not this factor')
    def run():
        global calls
        calls += 1
        if inputs['factor'] == 8 and calls > 3: raise RuntimeError('it broke')
        return Result(outputs['y'].shape, inputs['factor'] * 2)
    return run
def describe(): return 'twice 1.0'
"""


def main():
    folder = tempfile.TemporaryDirectory()
    plugin = os.path.join(folder.name, "plugin.py")
    with open(plugin, "w") as file:
        file.write(PLUGIN)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(target=r.serve, args=(theirs, r.Runner(plugin, FakeCard)), daemon=True)  # what fails ends the check
    thread.start()
    hello = r.Header.from_buffer_copy(ours.recv(r.LARGEST))
    assert (hello.magic, hello.version, hello.kind, hello.bytes) == (r.MAGIC, r.VERSION, r.HELLO, 16)
    sequence = 0

    def ask(kind, message, answer, fds=()):
        nonlocal sequence
        sequence += 1
        message.header = r.Header(r.MAGIC, r.VERSION, kind, sequence, ctypes.sizeof(message))
        socket.send_fds(ours, [bytes(message)], list(fds))
        packet = ours.recv(r.LARGEST)
        reply = answer.from_buffer_copy(packet)
        assert reply.header.kind == r.KIND_OF[answer] and reply.header.sequence == sequence and reply.header.bytes == len(packet)
        return reply

    def tensor(name, allocation, shape, scalar=0):
        t = r.CudaTensor(name=name, place=r.Place(allocation, 256), scalar=scalar, code=2, bits=32, rank=len(shape))
        for i, n in enumerate(shape):
            t.shape[i] = n
        return t

    def prepare(factor, outputs_allocation=2):
        p = r.CudaPrepare(input_count=2, output_count=1)
        p.tensors[0] = tensor(b"x", 1, [3, 4])
        bits = ctypes.c_uint32.from_buffer_copy(ctypes.c_float(factor)).value
        p.tensors[1] = tensor(b"factor", 0, [], bits)
        p.tensors[2] = tensor(b"y", outputs_allocation, [3, 4])
        return ask(r.PREPARE, p, r.Reply)

    assert ask(r.LOAD, r.Load(subject=3), r.Reply).outcome == r.LOAD_FAILED  # an image
    loaded = ask(r.LOAD, r.Load(subject=4), r.Reply)
    assert loaded.outcome == r.OK and loaded.text == b"twice 1.0", loaded.text
    with open(plugin) as file:
        for number, writable in ((1, 0), (2, 1)):
            placed = ask(r.IMPORT, r.CudaImport(allocation=number, bytes=4096, writable=writable), r.CudaPlaced, [file.fileno()])
            assert placed.outcome == r.OK and placed.address == 0x7000 * number
    assert ask(r.IMPORT, r.CudaImport(allocation=3, bytes=4096), r.CudaPlaced).outcome == r.BROKEN  # no descriptor
    assert ask(r.GO, r.Go(), r.CudaDone).outcome == r.BROKEN  # not prepared
    refused = prepare(7)
    assert refused.outcome == r.REFUSED and b"not this factor" in refused.text
    assert prepare(2, outputs_allocation=9).outcome == r.REFUSED  # not imported
    ready = prepare(2.5)
    assert ready.outcome == r.OK and ready.allocates == 1 and b"behind the clock" in ready.text, ready.text
    assert ask(r.READY, r.Ready(pattern=5), r.Reply).outcome == r.OK
    FakeCard.last.tensors["y"].value = None
    done = ask(r.GO, r.Go(), r.CudaDone)
    assert (done.outcome, done.inside_s, done.sm_mhz, done.hold_expired) == (r.OK, 25e-6, 1755.0, 0)
    assert FakeCard.last.tensors["y"].value == 5.0  # copied behind the clock
    assert ask(r.BATCH, r.CudaBatch(calls=1, flush_only=1, graphs=4), r.CudaDone).outcome == r.OK  # recorded, off the clock
    assert (FakeCard.last.flushes, FakeCard.last.recordings, FakeCard.last.plays) == (1, 2, 1)
    assert ask(r.BATCH, r.CudaBatch(calls=4, graphs=4), r.CudaDone).outcome == r.OK
    assert (FakeCard.last.flushes, FakeCard.last.recordings, FakeCard.last.plays) == (5, 2, 5)
    assert ask(r.BATCH, r.CudaBatch(calls=2, flush_only=1), r.CudaDone).outcome == r.OK and FakeCard.last.flushes == 7
    assert ask(r.BATCH, r.CudaBatch(calls=5000, graphs=1), r.CudaDone).outcome == r.REFUSED  # more than there may be
    FakeCard.last.records = False  # an expert that no graph can hold
    assert prepare(2.5).outcome == r.OK
    refused = ask(r.BATCH, r.CudaBatch(calls=3, graphs=3), r.CudaDone)
    assert refused.outcome == r.REFUSED and b"CUDA graph" in refused.text, refused.text
    assert (FakeCard.last.flushes, FakeCard.last.plays, FakeCard.last.unpinned) == (7, 7, 3)
    assert ask(r.PROFILE, r.Profile(seconds=1), r.Samples).note == b"a Python expert is not sampled"
    broke = prepare(8)
    assert broke.outcome == r.REFUSED and b"it broke" in broke.text  # in its warm-up
    assert ask(r.FORGET, r.CudaForget(allocation=2), r.Reply).outcome == r.OK and 2 not in FakeCard.last.mapped
    assert ask(r.GO, r.Go(), r.CudaDone).outcome == r.BROKEN  # its memory is gone
    ours.sendall(b"x" * 40)  # no request: the runner ends
    thread.join(10)
    assert not thread.is_alive()
    check_once(folder.name, plugin)
    print("expert_runner_check: ok")


def check_once(folder, plugin):
    """The same call from a file, and files that hold none."""

    def message(kind, m, sequence):
        m.header = r.Header(r.MAGIC, r.VERSION, kind, sequence, ctypes.sizeof(m))
        return bytes(m)

    def tensor(name, allocation, scalar=0):
        t = r.CudaTensor(name=name, place=r.Place(allocation, 0), scalar=scalar, code=2, bits=32, rank=1 if allocation else 0)
        t.shape[0] = 4
        return t

    p = r.CudaPrepare(input_count=2, output_count=1)
    p.tensors[0], p.tensors[2] = tensor(b"x", 1), tensor(b"y", 2)
    p.tensors[1] = tensor(b"factor", 0, ctypes.c_uint32.from_buffer_copy(ctypes.c_float(3)).value)
    load, prepare = message(r.LOAD, r.Load(subject=4), 1), message(r.PREPARE, p, 4)
    imports = b"".join(message(r.IMPORT, r.CudaImport(allocation=i, bytes=4096), 1 + i) for i in (1, 2))
    path = os.path.join(folder, "call")

    def said(content):
        with open(path, "wb") as file:
            file.write(content)
        return r.OnceRunner(plugin, FakeCard).make_call(path)

    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        assert said(load + imports + prepare) is None
    assert heard.getvalue().startswith("made: twice 1.0"), heard.getvalue()
    card = FakeCard.last
    assert card.log == ["profiled"] and card.tensors["x"].value == "drawn" and set(card.mapped) == {1, 2}
    assert "should begin" in said(load)
    assert "not the message" in said(b"x" + load)
    assert "not the message" in said(imports)
    assert "ends within" in said(load + imports + prepare[:-1])
    assert "behind the last" in said(load + imports + prepare + b"x")
    assert "only an expert" in said(message(r.LOAD, r.Load(subject=3), 1) + imports + prepare)
    p.tensors[1].scalar = ctypes.c_uint32.from_buffer_copy(ctypes.c_float(7)).value
    assert "not this factor" in said(load + imports + message(r.PREPARE, p, 4))


main()
