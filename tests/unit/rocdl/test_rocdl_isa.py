"""Helpers of fx.rocdl down to instructions: one kernel per case, compiled by LLVM 22.1, mnemonics looked up in the ISA."""

import re
from collections.abc import Callable

import pytest

from flydsl.expr import buffer_ops, rocdl
from flydsl.expr.numeric import Float32, Int32, Int64
from flydsl.expr.rocdl.values import operand
from flydsl.ir import Trace, emit, emit1, ir

pytest.importorskip("llvmlite")


def vec(n, elem):
    return ir.VectorType.get([n], elem)


class Args:
    """Values read from memory, so that nothing folds, and `keep`, which stores results."""

    def __init__(self, trace: Trace, pointer: ir.Value, rsrc_base: ir.Value):
        self.T, self._pointer, self._at = trace.types, pointer, 0
        self.lane = Int32(emit1("rocdl.workitem.id.x", trace.types.i32))
        self.base = rsrc_base

    def load(self, type_: ir.Type) -> ir.Value:
        """A run-time value of a type, from its own place."""
        self._at += 64
        p = buffer_ops.get_element_ptr(self._pointer, Int32(self.lane) * 1024, self._at)
        op = emit("llvm.load", (type_,), (p,))
        return op.result

    def keep(self, x) -> None:
        """Store a result."""
        self._at += 64
        p = buffer_ops.get_element_ptr(self._pointer, Int32(self.lane) * 1024, self._at)
        emit("llvm.store", (), (operand(x), p))

    @property
    def i(self):
        return Int32(self.load(self.T.i32))

    @property
    def x(self):
        return Float32(self.load(self.T.f32))

    @property
    def rsrc(self):
        return buffer_ops.create_buffer_resource(self.base)

    @property
    def lds(self):
        return emit1("llvm.inttoptr", self.T.llvm_ptr(3), (operand(self.i),))


def isa_of(arch: str, build: Callable[[Args], None], wave: int = 64) -> str:
    """Return the ISA of a kernel with body `build`."""
    from flydsl.targets.rocm.compile import compile_lowered

    trace = Trace(arch)
    with trace:
        types = trace.types
        module_attrs = {"sym_name": ir.StringAttr.get("kernels")}
        gpu_module = emit("gpu.module", (), (), module_attrs, 1)
        body = gpu_module.regions[0].blocks.append()
        trace.module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with trace.in_block(body):
            inputs = [types.llvm_ptr(1), types.llvm_ptr(1)]
            fty = ir.FunctionType.get(inputs, [])
            attrs = {
                "sym_name": ir.StringAttr.get("k"),
                "function_type": ir.TypeAttr.get(fty),
                "kernel": ir.UnitAttr.get(),
            }
            func = emit("gpu.func", (), (), attrs, 1)
            block = func.regions[0].blocks.append(*inputs, arg_locs=[trace.unknown_loc] * 2)
            with trace.in_function(block, "kernel", None):
                build(Args(trace, *block.arguments))
                emit("gpu.return")
        assert trace.module.operation.verify()
        return compile_lowered(trace.module, arch=arch).isa


R = rocdl


def _pair(a):
    return ir.Type.parse("!llvm.struct<(i32, i32)>", a.T.i32.context)


def _first(a, pair):
    attrs = {"position": ir.DenseI64ArrayAttr.get([0], a.T.i32.context)}
    a.keep(emit1("llvm.extractvalue", a.T.i32, (pair,), attrs))


# (chip, body, mnemonics that must occur)
CASES = {
    "wave": (
        "gfx942",
        lambda a: [
            a.keep(R.readfirstlane(Int32, a.i)),
            a.keep(R.readlane(Int32, a.i, 3)),
            a.keep(R.ballot(Int64, a.i > 3)),
            a.keep(R.ds_bpermute(Int32, a.lane * 4, a.i)),
            a.keep(R.perm_b32(a.i, a.i, 0x07060302)),
        ],
        ["v_readfirstlane_b32", "v_readlane_b32", "v_cmp_lt_i32", "ds_bpermute_b32", "v_perm_b32"],
    ),
    "wave by parts": (
        "gfx942",
        lambda a: [
            a.keep(R.readfirstlane(Int64, a.load(a.T.i64))),
            a.keep(R.readfirstlane(Float32, a.x)),
            a.keep(R.ds_bpermute(Float32, a.i, a.x)),
            a.keep(R.ds_bpermute(Int64, a.i, a.load(a.T.i64))),
        ],
        ["v_readfirstlane_b32", "ds_bpermute_b32"],
    ),
    "dpp": (
        "gfx942",
        lambda a: [
            a.keep(R.update_dpp(Int32, 0, a.i, 0x111, 0xF, 0xF, False)),
            a.keep(R.update_dpp(Int32, a.i, a.i, 0x142, 0xA, 0xF, False)),
        ],
        ["row_shr:1", "row_bcast:15"],
    ),
    "swaps": (
        "gfx950",
        lambda a: [
            _first(a, R.permlane32_swap(_pair(a), a.i, a.i, False, False)),
            _first(a, R.permlane16_swap(_pair(a), a.i, a.i, False, False)),
        ],
        ["v_permlane32_swap_b32", "v_permlane16_swap_b32"],
    ),
    "arithmetic": (
        "gfx942",
        lambda a: [
            *[a.keep(getattr(R, n)(Float32, a.x)) for n in ("rcp", "exp2", "log", "rsq", "sqrt", "sin", "cos")],
            a.keep(R.fmed3(Float32, a.x, a.x, a.x)),
            a.keep(R.cvt_off_f32_i4(a.i, 1)),
        ],
        [
            "v_rcp_f32",
            "v_exp_f32",
            "v_log_f32",
            "v_rsq_f32",
            "v_sqrt_f32",
            "v_sin_f32",
            "v_cos_f32",
            "v_med3_f32",
            "v_cvt_off_f32_i4",
        ],
    ),
    "fp8": (
        "gfx942",
        lambda a: [
            a.keep(R.cvt_pk_fp8_f32(Int32, a.x, a.x, a.i, True)),
            a.keep(R.cvt_pk_bf8_f32(Int32, a.x, a.x, a.i, False)),
            a.keep(R.cvt_pk_f32_fp8(vec(2, a.T.f32), a.i, False)),
            a.keep(R.cvt_f32_fp8(Float32, a.i, 2)),
        ],
        ["v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_pk_f32_fp8", "v_cvt_f32_fp8"],
    ),
    "gfx950 conversions": (
        "gfx950",
        lambda a: [
            a.keep(R.cvt_scalef32_pk_fp4_f32(Int32, a.i, a.x, a.x, a.x, 2)),
            a.keep(R.cvt_scalef32_pk_fp4_bf16(Int32, a.i, a.load(vec(2, a.T.bf16)), a.x, 1)),
            a.keep(R.cvt_scalef32_pk_f32_fp4(vec(2, a.T.f32), a.i, a.x, 1)),
            a.keep(R.cvt_scalef32_pk_bf16_fp4(vec(2, a.T.bf16), a.i, a.x, 1)),
            a.keep(R.cvt_scalef32_pk_fp8_f32(vec(2, a.T.i16), a.load(vec(2, a.T.i16)), a.x, a.x, a.x, True)),
            a.keep(
                R.cvt_scalef32_pk_fp8_bf16(
                    vec(2, a.T.i16), a.load(vec(2, a.T.i16)), a.load(vec(2, a.T.bf16)), a.x, True
                )
            ),
            a.keep(R.cvt_pk_bf16_f32(a.x, a.x)),
            a.keep(R.cdna4.cvt_sr_f32_to_bf16(a.x, a.i)),
        ],
        [
            "v_cvt_scalef32_pk_fp4_f32",
            "v_cvt_scalef32_pk_fp4_bf16",
            "v_cvt_scalef32_pk_f32_fp4",
            "v_cvt_scalef32_pk_bf16_fp4",
            "v_cvt_scalef32_pk_fp8_f32",
            "v_cvt_scalef32_pk_fp8_bf16",
            "v_cvt_pk_bf16_f32",
            "v_cvt_sr_bf16_f32",
        ],
    ),
    "buffers": (
        "gfx942",
        lambda a: [
            a.keep(R.raw_ptr_buffer_load(vec(4, a.T.f32), a.rsrc, a.i, 0, 2)),
            a.keep(R.raw_ptr_buffer_load(Float32, a.rsrc, a.i, 16)),
            R.raw_ptr_buffer_store(a.load(vec(2, a.T.f32)), a.rsrc, a.i, 0, 1),
            a.keep(R.raw_ptr_buffer_atomic_fadd(a.x, a.rsrc, a.i, 0)),
            R.raw_ptr_buffer_load_lds(a.rsrc, a.lds, 4, a.i, 0, 8),
            a.keep(buffer_ops.buffer_load(a.rsrc, a.i, 8, a.T.f16)),
            buffer_ops.buffer_store(a.load(a.T.i8), a.rsrc, a.i, mask=a.i > 2),
            a.keep(buffer_ops.buffer_load(a.rsrc, 3, 4, Int32, is_scalar=True)),
        ],
        [
            "buffer_load_dwordx4",
            "nt",
            "buffer_load_dword ",
            "buffer_store_dwordx2",
            "sc0",
            "buffer_atomic_add_f32",
            "offset:8 lds",
            "buffer_store_byte",
            "s_buffer_load_dwordx4",
        ],
    ),
    "wide DMA and transposed reads": (
        "gfx950",
        lambda a: [
            R.raw_ptr_buffer_load_lds(a.rsrc, a.lds, 16, a.i, 0, 0),
            a.keep(R.ds_read_tr16_b64(vec(4, a.T.f16), a.lds)),
            a.keep(R.ds_read_tr8_b64(vec(2, a.T.i32), a.lds)),
            a.keep(R.ds_read_tr4_b64(vec(2, a.T.i32), a.lds)),
            a.keep(R.ds_read_tr6_b96(vec(3, a.T.i32), a.lds)),
        ],
        [
            "buffer_load_dwordx4 v",
            "lds",
            "ds_read_b64_tr_b16",
            "ds_read_b64_tr_b8",
            "ds_read_b64_tr_b4",
            "ds_read_b96_tr_b6",
        ],
    ),
    "waits and scheduling": (
        "gfx942",
        lambda a: [
            R.s_waitcnt(vmcnt=3),
            R.s_barrier(),
            R.s_waitcnt(lgkmcnt=2),
            R.sched_barrier(0),
            R.sched_mfma(1),
            R.sched_vmem(2),
            R.s_setprio(2),
            R.s_nop(3),
        ],
        [
            "s_waitcnt vmcnt(3)",
            "s_waitcnt lgkmcnt(2)",
            "s_barrier",
            "sched_barrier mask(0x00000000)",
            "mask(0x00000008) size(1)",
            "mask(0x00000020) size(2)",
            "s_setprio 2",
            "s_nop 3",
        ],
    ),
    "gfx12 waits": (
        "gfx1201",
        lambda a: [
            a.keep(a.i),
            R.s_wait_loadcnt(1),
            R.s_wait_storecnt(2),
            R.s_wait_dscnt(3),
            R.s_barrier_signal(-1),
            R.s_barrier_wait(-1),
        ],
        ["s_wait_loadcnt_dscnt 0x103", "s_wait_storecnt 0x2", "s_barrier_signal -1", "s_barrier_wait -1"],
    ),
    "mfma": (
        "gfx942",
        lambda a: [
            a.keep(
                R.mfma_f32_16x16x16f16(
                    vec(4, a.T.f32), [a.load(vec(4, a.T.f16))] * 2 + [a.load(vec(4, a.T.f32)), 0, 0, 0]
                )
            ),
            a.keep(
                R.mfma_f32_32x32x8bf16_1k(
                    vec(16, a.T.f32), [a.load(vec(4, a.T.i16))] * 2 + [a.load(vec(16, a.T.f32)), 0, 0, 0]
                )
            ),
            a.keep(
                R.mfma_f32_16x16x32_fp8_fp8(vec(4, a.T.f32), [a.load(a.T.i64)] * 2 + [a.load(vec(4, a.T.f32)), 0, 0, 0])
            ),
            a.keep(R.mfma_i32_16x16x32_i8(vec(4, a.T.i32), [a.load(a.T.i64)] * 2 + [a.load(vec(4, a.T.i32)), 0, 0, 0])),
            a.keep(R.mfma_f64_16x16x4f64(vec(4, a.T.f64), [a.load(a.T.f64)] * 2 + [a.load(vec(4, a.T.f64)), 0, 0, 0])),
        ],
        [
            "v_mfma_f32_16x16x16_f16",
            "v_mfma_f32_32x32x8_bf16",
            "v_mfma_f32_16x16x32_fp8_fp8",
            "v_mfma_i32_16x16x32_i8",
            "v_mfma_f64_16x16x4_f64",
        ],
    ),
    "gfx950 mfma": (
        "gfx950",
        lambda a: [
            a.keep(
                R.mfma_f32_16x16x32_bf16(
                    vec(4, a.T.f32), [a.load(vec(8, a.T.bf16))] * 2 + [a.load(vec(4, a.T.f32)), 0, 0, 0]
                )
            ),
            a.keep(
                R.mfma_scale_f32_16x16x128_f8f6f4(
                    vec(4, a.T.f32), [a.load(vec(8, a.T.i32))] * 2 + [a.load(vec(4, a.T.f32)), 4, 0, 1, a.i, 2, a.i]
                )
            ),
        ],
        ["v_mfma_f32_16x16x32_bf16", "v_mfma_scale_f32_16x16x128_f8f6f4", "cbsz:4", "op_sel"],
    ),
    "gfx11 wmma": (
        "gfx1100",
        lambda a: [
            a.keep(R.wmma_f32_16x16x16_f16(vec(8, a.T.f32), *[a.load(vec(16, a.T.f16))] * 2, a.load(vec(8, a.T.f32)))),
            a.keep(
                R.wmma_i32_16x16x16_iu8(
                    vec(8, a.T.i32), *[a.load(vec(4, a.T.i32))] * 2, a.load(vec(8, a.T.i32)), sign_a=True, sign_b=True
                )
            ),
        ],
        ["v_wmma_f32_16x16x16_f16", "v_wmma_i32_16x16x16_iu8", "neg_lo:[1,1,0]"],
    ),
    "gfx12 wmma": (
        "gfx1201",
        lambda a: [
            a.keep(
                R.wmma_f32_16x16x16_fp8_fp8(vec(8, a.T.f32), *[a.load(vec(2, a.T.i32))] * 2, a.load(vec(8, a.T.f32)))
            ),
        ],
        ["v_wmma_f32_16x16x16_fp8_fp8"],
    ),
    "gfx1250": (
        "gfx1250",
        lambda a: [
            a.keep(R.wmma_f32_16x16x32_f16(vec(8, a.T.f32), *[a.load(vec(16, a.T.f16))] * 2, a.load(vec(8, a.T.f32)))),
            a.keep(
                R.wmma_scale_f32_16x16x128_f8f6f4(
                    vec(8, a.T.f32),
                    *[a.load(vec(16, a.T.i32))] * 2,
                    a.load(vec(8, a.T.f32)),
                    a.i,
                    a.i,
                    fmt_a=0,
                    fmt_b=0,
                )
            ),
            a.keep(R.cvt_scalef32_pk8_fp8_f32(vec(2, a.T.i32), a.load(vec(8, a.T.f32)), a.x)),
            a.keep(R.ds_load_tr16_b128(vec(8, a.T.f16), a.lds)),
            R.s_wait_tensorcnt(1),
            R.cluster.cluster_barrier(),
            a.keep(R.cluster_workgroup_id_x(Int32)),
            a.keep(R.wave_id()),
            R.disable_xdl_arb_stall(),
            R.tensor_load_to_lds(*[a.load(vec(n, a.T.i32)) for n in (4, 8, 4, 4)]),
        ],
        [
            "v_wmma_f32_16x16x32_f16",
            "v_wmma_scale_f32_16x16x128_f8f6f4",
            "v_cvt_scalef32_pk8_fp8_f32",
            "ds_load_tr16_b128",
            "s_wait_tensorcnt 0x1",
            "s_barrier_signal -3",
            "s_barrier_wait -3",
            "s_setreg",
            "tensor_load_to_lds",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mnemonics(case):
    arch, build, mnemonics = CASES[case]
    isa = isa_of(arch, build)
    code = "\n".join(re.sub(r"_e(32|64)(_dpp)?\b", "", line) for line in isa.splitlines())
    missing = [m for m in mnemonics if m not in code]
    assert not missing, (missing, [line for line in code.splitlines() if line.startswith("\t") and "\t." not in line])
