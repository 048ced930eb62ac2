"""The worker process: code generation requests on stdin, results on stdout. `worker.py` starts it by path.

Imports llvmlite and the file `codegen.py` beside it, nothing of the package (whose import would load MLIR). A
message is a JSON line, then the binary parts whose lengths the line gives.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Serve requests until stdin closes. What LLVM prints goes to stderr, which the parent keeps."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code that writes to stdout must not break the protocol
    first = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = first["path"]
    codegen = _load(Path(__file__).with_name("codegen.py"))
    for name, value in first["llvm_options"]:
        codegen.set_llvm_option(name, value)
    _send(stream, {"ready": True}, [])
    while line := sys.stdin.buffer.readline():
        header = json.loads(line)
        text = sys.stdin.buffer.read(header.pop("text_bytes")).decode()
        bitcode = sys.stdin.buffer.read(header.pop("bitcode_bytes"))
        header["outputs"] = tuple(header["outputs"])
        try:
            results = codegen.generate(codegen.Request(text=text, bitcode=bitcode, **header))
        except codegen.LlvmError as error:
            _send(stream, {"error": str(error), "symbols": error.symbols}, [])
            continue
        parts = [v.encode() if isinstance(v, str) else v for v in results.values()]
        kinds = [[name, isinstance(v, str), len(part)] for (name, v), part in zip(results.items(), parts)]
        _send(stream, {"results": kinds}, parts)


def _load(path: Path):
    spec = importlib.util.spec_from_file_location("flydsl_codegen", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _send(stream, header: dict, parts: list[bytes]) -> None:
    stream.write(json.dumps(header).encode() + b"\n")
    for part in parts:
        stream.write(part)
    stream.flush()


if __name__ == "__main__":
    main()
