"""Run the LLVM IR of a kernel on the host: a second path beside the simulator, for kernels without GPU intrinsics.

v_rsq_f32 is replaced by a correctly rounded 1/sqrt, so that the code around it can be checked.
"""

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np

_KEEP = []
_RSQ = """
define float @host.rsq.f32(float %x) {
  %d = fpext float %x to double
  %s = call double @llvm.sqrt.f64(double %d)
  %r = fdiv double 1.0, %s
  %f = fptrunc double %r to float
  ret float %f
}
"""


def kernel_on_host(llvm_ir: str, name: str = "k"):
    """Return a function that takes arrays (by pointer) and integers (as i32) and runs the kernel once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = llvm_ir.replace("amdgpu_kernel void", "void")
    text = re.sub(r"attributes #\d+ = \{.*\}", "", text)
    text = re.sub(r"(\)|\]) (?:#\d+ ?)+", r"\1 ", text)
    if "@llvm.amdgcn.rsq.f32" in text:
        text = re.sub(r"declare.*@llvm.amdgcn.rsq.f32.*", _RSQ, text).replace("@llvm.amdgcn.rsq.f32", "@host.rsq.f32")
        if "declare double @llvm.sqrt.f64" not in text:
            text += "\ndeclare double @llvm.sqrt.f64(double)\n"
    assert "@llvm.amdgcn." not in text, "GPU intrinsics cannot run on the host"
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _KEEP.append((engine, machine))
    address = engine.get_function_address(name)

    def run(*arguments):
        kinds, values = [], []
        for a in arguments:
            if isinstance(a, np.ndarray):
                kinds.append(ctypes.c_void_p)
                values.append(a.ctypes.data)
            else:
                kinds.append(ctypes.c_int32)
                values.append(a)
        ctypes.CFUNCTYPE(None, *kinds)(address)(*values)

    return run
