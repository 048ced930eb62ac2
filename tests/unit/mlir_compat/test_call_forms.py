"""Call forms of raw dialect code as public kernels write them; each line must build, and the module must verify."""

import pytest

from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, builtin, fly, func, gpu, llvm, math, memref, rocdl, vector  # noqa: F401
from flydsl._mlir.extras import types as T
from flydsl.expr.numeric import Float32, Int32  # noqa: F401  (named in the forms)
from flydsl.expr.numeric.raw_value import ArithValue


def P(space):
    return ir.Type.parse(f"!llvm.ptr<{space}>")


# (expression, op that it builds). Names: i Int32, x f32, v vector<4xf32>, p and r pointers, w i64, c i1, h vector<4xf16>, m memref, n index.
FORMS = [
    ('llvm.call_intrinsic(T.f32(), "llvm.amdgcn.rcp.f32", [x], [], [])', 'llvm.call_intrinsic "llvm.amdgcn.rcp.f32"'),
    ('llvm.call_intrinsic(None, "llvm.amdgcn.sched.barrier", [Int32(0)], [], [])', "llvm.call_intrinsic"),
    (
        'llvm.inline_asm(T.i32(), [i], "v_mov_b32 $0, $1", "=v,v", has_side_effects=True)',
        "llvm.inline_asm has_side_effects",
    ),
    ('llvm.inline_asm(None, [i], "s_nop 0", "s", has_side_effects=True)', "llvm.inline_asm has_side_effects"),
    (
        'llvm.InlineAsmOp(None, [], "s_waitcnt vmcnt(0)", "", has_side_effects=True, is_align_stack=False, asm_dialect=0)',
        "llvm.inline_asm",
    ),
    ('llvm.InlineAsmOp(res=T.i32(), operands_=[i], asm_string="s", constraints="=v,v").result', "llvm.inline_asm"),
    ("llvm.inttoptr(P(1), w)", "llvm.inttoptr"),
    ("llvm.IntToPtrOp(P(3), i).result", "llvm.inttoptr"),
    ("llvm.ptrtoint(T.i64(), p)", "llvm.ptrtoint"),
    ("llvm.PtrToIntOp(T.i64(), p).result", "llvm.ptrtoint"),
    ("llvm.load(T.i32(), p, alignment=4)", "llvm.load"),
    ("llvm.LoadOp(T.i32(), p).result", "llvm.load"),
    (
        'llvm.load(T.i32(), p, ordering=llvm.AtomicOrdering.monotonic, syncscope="agent", alignment=4)',
        'atomic syncscope("agent") monotonic',
    ),
    ("llvm.store(i, p, alignment=4, nontemporal=True)", "llvm.store"),
    (
        'llvm.StoreOp(i, p, alignment=4, ordering=llvm.AtomicOrdering.release, syncscope="agent")',
        'atomic syncscope("agent") release',
    ),
    (
        'llvm.AtomicRMWOp(llvm.AtomicBinOp.add, p, i, llvm.AtomicOrdering.monotonic, syncscope="agent", alignment=4).result',
        "llvm.atomicrmw add",
    ),
    ("llvm.AtomicRMWOp(llvm.AtomicBinOp.fadd, p, x, llvm.AtomicOrdering.monotonic).result", "llvm.atomicrmw fadd"),
    ("llvm.AtomicRMWOp(llvm.AtomicBinOp._or, p, i, llvm.AtomicOrdering.acq_rel).result", "llvm.atomicrmw _or"),
    ('llvm.FenceOp(llvm.AtomicOrdering.acquire, syncscope="agent")', "llvm.fence"),
    ("llvm.GEPOp(P(1), p, [i], [-2147483648], T.i8(), None).result", "llvm.getelementptr"),
    ("llvm.GEPOp(P(1), p, [], [4], T.i8(), 0).result", "llvm.getelementptr"),
    ("llvm.AddOp(i, i, llvm.IntegerOverflowFlags(0)).result", "llvm.add"),
    ("llvm.AddOp(i, i, llvm.IntegerOverflowFlags.nsw).result", "nsw"),
    ("llvm.MulOp(i, i, overflow_flags=llvm.IntegerOverflowFlags.nuw).result", "nuw"),
    ("llvm.ShlOp(i, i, None).result", "llvm.shl"),
    ("llvm.OrOp(i, i).result", "llvm.or"),
    ("llvm.ZExtOp(T.i64(), i).result", "llvm.zext"),
    ("llvm.BitcastOp(T.f32(), i).result", "llvm.bitcast"),
    ("llvm.FPExtOp(T.f64(), x).result", "llvm.fpext"),
    ("llvm.FPTruncOp(T.f16(), x).result", "llvm.fptrunc"),
    ("llvm.ConstantOp(T.i32(), ir.IntegerAttr.get(T.i32(), 3)).result", "llvm.mlir.constant"),
    ('llvm.mlir_undef(ir.Type.parse("!llvm.struct<(i32, i32)>"))', "llvm.mlir.undef"),
    (
        'llvm.extractvalue(T.i32(), llvm.mlir_poison(ir.Type.parse("!llvm.struct<(i32, i32)>")), [0])',
        "llvm.extractvalue",
    ),
    ("llvm.insertelement(v, x, i)", "llvm.insertelement"),
    ("llvm.extractelement(v, i)", "llvm.extractelement"),
    ("llvm.bitcast(T.f32(), i)", "llvm.bitcast"),
    ("llvm.intr_fma(x, x, x)", "llvm.intr.fma"),
    ("llvm.intr_expect(c, c)", "llvm.intr.expect"),
    ("llvm.select(c, i, i)", "llvm.select"),
    ("llvm.fneg(x)", "llvm.fneg"),
    ("llvm.intr_maxnum(x, x)", "llvm.intr.maxnum"),
    ("memref.extract_aligned_pointer_as_index(m)", "memref.extract_aligned_pointer_as_index"),
    ('memref.view(ir.Type.parse("memref<16xi32, 3>"), m, n, [])', "memref.view"),
    ("memref.load(m, [n])", "memref.load"),
    ("vector.load(T.vector(4, T.i8()), m, [n])", "vector.load"),
    ("vector.store(vector.load(T.vector(4, T.i8()), m, [n]), m, [n])", "vector.store"),
    ("vector.from_elements(T.vector(2, T.f32()), [Float32(1.0), x])", "vector.from_elements"),
    ("vector.extract(v, [], [0])", "vector.extract"),
    ("vector.bitcast(T.vector(4, T.i32()), v)", "vector.bitcast"),
    ("vector.BitCastOp(T.vector(4, T.i32()), v).result", "vector.bitcast"),
    ("vector.broadcast(T.vector(4, T.f32()), x)", "vector.broadcast"),
    ("vector.shuffle(v, v, [0, 1, 4, 5])", "vector.shuffle"),
    ("vector.insert(x, v, [], [1])", "vector.insert"),
    ("vector.extract_strided_slice(T.vector(2, T.f32()), v, [0], [2], [1])", "vector.extract_strided_slice"),
    ("vector.reduction(T.f32(), vector.CombiningKind.ADD, v)", "vector.reduction <add>"),
    ("vector.InsertOp(x, v, [], [0]).result", "vector.insert"),
    ("vector.ExtractOp(v, [n], [ir.ShapedType.get_dynamic_size()]).result", "vector.extract"),
    ("arith.ConstantOp(T.i32(), 7).result", "arith.constant 7"),
    ("arith.constant(T.i32(), 5)", "arith.constant 5"),
    ("arith.AddIOp(i, i).result", "arith.addi"),
    ("arith.MulIOp(i, i).result", "arith.muli"),
    ("arith.SelectOp(c, i, i).result", "arith.select"),
    ("arith.ExtSIOp(T.i64(), i).result", "arith.extsi"),
    ("arith.ExtUIOp(T.i64(), i).result", "arith.extui"),
    ("arith.TruncIOp(T.i8(), i).result", "arith.trunci"),
    ("arith.BitcastOp(T.f32(), i).result", "arith.bitcast"),
    ("arith.IndexCastOp(T.index(), i).result", "arith.index_cast"),
    ("arith.cmpi(arith.CmpIPredicate.ult, i, i)", "arith.cmpi ult"),
    ("arith.maxnumf(x, x)", "arith.maxnumf"),
    ("arith.ExtFOp(T.f64(), x).result", "arith.extf"),
    ("math.exp2(x, fastmath=arith.FastMathFlags.fast)", "math.exp2 %arg1 fastmath<fast>"),
    ("rocdl.MakeBufferRsrcOp(P(8), p, arith.ConstantOp(T.i16(), 0).result, w, i).result", "rocdl.make.buffer.rsrc"),
    (
        "rocdl.RawPtrBufferLoadOp(T.f32(), r, i, i, aux=ir.IntegerAttr.get(T.i32(), 0)).result",
        "rocdl.raw.ptr.buffer.load",
    ),
    ("rocdl.RawPtrBufferStoreOp(x, r, i, i, aux=3)", "rocdl.raw.ptr.buffer.store"),
    ("rocdl.cvt_pk_fp8_f32(T.i32(), x, x, i, False)", "rocdl.cvt.pk.fp8.f32"),
    ("rocdl.exp2(T.f32(), x)", "rocdl.exp2"),
    ("rocdl.s_waitcnt(0)", "rocdl.s.waitcnt 0"),
    ("rocdl.sched_barrier(mask=0)", "rocdl.sched.barrier none"),
    ("rocdl.SchedBarrier(8)", "rocdl.sched.barrier mfma_wmma"),
    ("rocdl.ReadfirstlaneOp(T.i32(), i).result", "rocdl.readfirstlane"),
    ("rocdl.mfma_f32_16x16x16f16(T.vector(4, T.f32()), [h, h, v, 0, 0, 0])", "rocdl.mfma.f32.16x16x16f16"),
    ("rocdl.mfma_f32_16x16x16f16(T.vector(4, T.f32()), h, h, v, 0, 0, 0).result", "rocdl.mfma.f32.16x16x16f16"),
    ("gpu.thread_id(gpu.Dimension.x)", "gpu.thread_id"),
    ("gpu.ShuffleOp(i, i, i, gpu.ShuffleMode.XOR).results", "gpu.shuffle"),
    ("gpu.barrier()", "gpu.barrier"),
    ("builtin.UnrealizedConversionCastOp([T.i64()], [i]).results", "builtin.unrealized_conversion_cast"),
]


@pytest.mark.parametrize("form,text", FORMS)
def test_form(form, text):
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        inputs = [
            T.i32(),
            T.f32(),
            T.vector(4, T.f32()),
            P(1),
            P(8),
            T.i64(),
            T.i1(),
            T.vector(4, T.f16()),
            T.memref(64, T.i8(), memory_space=3),
            T.index(),
        ]
        with ir.InsertionPoint(module.body):
            f = func.FuncOp("f", ir.FunctionType.get(inputs, []))
            with ir.InsertionPoint(f.add_entry_block()):
                names = dict(zip("ixvprwchmn", f.arguments))
                names["i"] = Int32(names["i"])
                out = eval(form, globals(), names)
                func.ReturnOp([])
        assert module.operation.verify()
        assert text in str(module)
    if isinstance(out, ir.Value) and isinstance(out.type, (ir.IntegerType, ir.VectorType)):
        assert isinstance(out, ArithValue)


def test_types_and_attributes_in_the_references_spelling():
    with ir.Context():
        for text in (
            "!fly.layout<(4,8):(8,1)>",
            "!fly.memref<f16, global, (64,128):(128,1)>",
            "!fly.ptr<f32, shared>",
            "!llvm.ptr<1>",
            "vector<4xf8E4M3FN>",
            "!llvm.struct<(i32, i32)>",
            "memref<16xi32, 3>",
        ):
            assert isinstance(ir.Type.parse(text), ir.Type)
        with pytest.raises(Exception, match="IR|type"):
            ir.Type.parse("!fly.layout<(4,8)")
        assert isinstance(ir.Attribute.parse("3 : i32"), ir.Attribute)


def test_modules_print_in_the_references_spelling():
    with ir.Context():
        text = "module {\n  func.func private @f(!fly.layout<(4,8):(8,1)>)\n}"
        assert str(ir.Module.parse(text)).strip() == text


def test_isinstance_of_stand_ins():
    with ir.Context() as ctx, ir.Location.unknown() as loc:
        assert isinstance(T.i32(), ir.Type) and isinstance(T.i32(), ir.IntegerType) and not isinstance(3, ir.Type)
        assert isinstance(loc, ir.Location) and isinstance(ctx, ir.Context)
        assert isinstance(ir.Module.create(), ir.Module)


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError, match="did you mean `AddIOp`"):
        arith.AddOp
    with pytest.raises(AttributeError):
        fly.no_such_function
    with pytest.raises(AttributeError, match="no dialect"):
        import flydsl._mlir.dialects as dialects

        dialects.no_such_dialect


def test_short_types():
    with ir.Context():
        assert [
            str(t)
            for t in (
                T.i(7),
                T.bf16(),
                T.vector(4, T.f32()),
                T.vector([2, 4], T.i8()),
                T.memref(8, T.f16(), memory_space=3),
            )
        ] == ["i7", "bf16", "vector<4xf32>", "vector<2x4xi8>", "memref<8xf16, 3>"]


def test_pass_manager_mixes_passes():
    from flydsl._mlir.passmanager import PassManager

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(
            "module { func.func @f() -> i32 { %a = arith.constant 1 : i32 %b = arith.addi %a, %a : i32 return %b : i32 } }"
        )
        manager = PassManager.parse("builtin.module(fly-canonicalize,canonicalize,func.func(cse))")
        manager.run(module.operation)
        assert "arith.constant 2" in str(module) and "addi" not in str(module)
        with pytest.raises(ValueError):
            PassManager.parse("builtin.module(no-such-pass)")


def test_operations_of_atoms_parse_back():
    from flydsl.expr import rocdl as fr

    for op in (fr.BufferCopy(128, 2), fr.MFMA(16, 16, 16, "f16"), fr.TDM(2, 1), fr.WMMAScale(16, 16, 128, "f8E4M3FN")):
        assert ir.Type.parse(str(op)) == op
