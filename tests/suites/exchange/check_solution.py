# SPDX-License-Identifier: Apache-2.0
# Builds a FlashInfer-Trace solution of softmax_f32 as their builder does (TVM-FFI, no flags), and calls it. check_solution.py FILE
import json
import os
import sys
import tempfile

import numpy as np
import tvm_ffi
import tvm_ffi.cpp

with open(sys.argv[1]) as file:
    solution = json.load(file)
with tempfile.TemporaryDirectory() as folder:
    files = []
    for source in solution["sources"]:
        files.append(os.path.join(folder, source["path"]))
        with open(files[-1], "w") as file:
            file.write(source["content"])
    cpp = [f for f in files if f.endswith((".cc", ".cpp"))]
    library = tvm_ffi.cpp.build(name="solution", cpp_files=cpp, extra_include_paths=[folder], build_directory=folder)
    run = tvm_ffi.load_module(library)["run"]

    def tensor(rows, columns=4096):
        raw = np.zeros(rows * columns * 4 + 64, np.uint8)
        at = -raw.ctypes.data % 64
        return raw[at : at + rows * columns * 4].view(np.float32).reshape(rows, columns)

    for rows in (1, 5, 67, 129):
        x, y = tensor(rows), tensor(rows)
        x[:] = np.random.default_rng(rows).normal(0, 3, x.shape)
        run(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        worst = np.abs(y / (e / e.sum(1, keepdims=True)) - 1).max()
        assert worst < 2.1e-5, (rows, worst)
    for bad in ((np.zeros((3, 4096)), tensor(3)), (tensor(3), tensor(4)), (tensor(3, 100), tensor(3, 100))):
        try:
            run(*[tvm_ffi.from_dlpack(b) for b in bad])
        except Exception as refused:
            print(type(refused).__name__, refused)
        else:
            raise SystemExit("accepted what it must refuse")
print("right")
