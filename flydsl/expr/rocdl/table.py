"""Every instruction of the upstream `rocdl` dialect that kernels can name: its arguments, and the chips that have it.

A signature lists the arguments in order: `res` is the result type, a bare name an SSA operand, `name:kind` a compile-
time attribute; those after `*` are optional and given by keyword. Kinds: i1 i16 i32, the enums of `attributes`, and
raw (an MLIR attribute passed on). MEMORY stands for the alias and TBAA attributes. `build` turns a row into a
function. tests/unit/rocdl/test_table.py compares all rows with the bindings' own builders.
"""

import re
from functools import cache

from flydsl import arch as chips
from flydsl.utils.record import record

SIGNATURES: tuple[tuple[str, str], ...] = (
    ("res arg", "cos exp exp2 log rcp rsq sin sqrt tanh"),
    ("", "asyncmark barrier s_barrier wave_barrier"),
    ("res pred", "ballot"),
    ("ptr memberCnt:i32", "s_barrier_init s_barrier_signal_var"),
    ("ptr", "s_barrier_join s_wakeup_barrier"),
    ("id:i16", "s_barrier_leave s_barrier_wait"),
    ("res id:i32", "s_barrier_signal_isfirst s_get_barrier_state"),
    ("id:i32", "s_barrier_signal"),
    (
        "res * range:raw",
        "cluster_id_x cluster_id_y cluster_id_z cluster_workgroup_id_x cluster_workgroup_id_y "
        "cluster_workgroup_id_z wave_id wavefrontsize workgroup_id_x workgroup_id_y workgroup_id_z "
        "workitem_id_x workitem_id_y workitem_id_z",
    ),
    (
        "globalPtr ldsPtr offset:i32 mask * cpol:i32 MEMORY",
        "cluster_load_async_to_lds_b128 cluster_load_async_to_lds_b32 cluster_load_async_to_lds_b64 "
        "cluster_load_async_to_lds_b8",
    ),
    ("res srcA byteSel:i32", "cvt_f32_bf8 cvt_f32_fp8"),
    ("res srcA srcB old wordSel:i1", "cvt_pk_bf8_f32 cvt_pk_fp8_f32"),
    ("res src wordSel:i1", "cvt_pk_f32_bf8 cvt_pk_f32_fp8"),
    ("res srcA srcB", "cvt_pkrtz"),
    (
        "res src scale scaleSel:i32",
        "cvt_scale_pk16_bf16_bf6 cvt_scale_pk16_bf16_fp6 cvt_scale_pk16_f16_bf6 "
        "cvt_scale_pk16_f16_fp6 cvt_scale_pk16_f32_bf6 cvt_scale_pk16_f32_fp6 cvt_scale_pk8_bf16_bf8 "
        "cvt_scale_pk8_bf16_fp4 cvt_scale_pk8_bf16_fp8 cvt_scale_pk8_f16_bf8 cvt_scale_pk8_f16_fp4 "
        "cvt_scale_pk8_f16_fp8 cvt_scale_pk8_f32_bf8 cvt_scale_pk8_f32_fp4 cvt_scale_pk8_f32_fp8",
    ),
    ("res oldVdst src scale srcSelIndex:i32 dstLoHiSel:i1", "cvt_scalef32_f16_bf8 cvt_scalef32_f16_fp8"),
    (
        "res src scale srcSelIndex:i32",
        "cvt_scalef32_f32_bf8 cvt_scalef32_f32_fp8 cvt_scalef32_pk_bf16_fp4 cvt_scalef32_pk_f16_fp4 "
        "cvt_scalef32_pk_f32_fp4",
    ),
    (
        "res src scale",
        "cvt_scalef32_pk16_bf6_bf16 cvt_scalef32_pk16_bf6_f16 cvt_scalef32_pk16_bf6_f32 "
        "cvt_scalef32_pk16_fp6_bf16 cvt_scalef32_pk16_fp6_f16 cvt_scalef32_pk16_fp6_f32 "
        "cvt_scalef32_pk32_bf16_bf6 cvt_scalef32_pk32_bf16_fp6 cvt_scalef32_pk32_bf6_bf16 "
        "cvt_scalef32_pk32_bf6_f16 cvt_scalef32_pk32_f16_bf6 cvt_scalef32_pk32_f16_fp6 "
        "cvt_scalef32_pk32_f32_bf6 cvt_scalef32_pk32_f32_fp6 cvt_scalef32_pk32_fp6_bf16 "
        "cvt_scalef32_pk32_fp6_f16 cvt_scalef32_pk8_bf8_bf16 cvt_scalef32_pk8_bf8_f16 "
        "cvt_scalef32_pk8_bf8_f32 cvt_scalef32_pk8_fp4_bf16 cvt_scalef32_pk8_fp4_f16 "
        "cvt_scalef32_pk8_fp4_f32 cvt_scalef32_pk8_fp8_bf16 cvt_scalef32_pk8_fp8_f16 "
        "cvt_scalef32_pk8_fp8_f32",
    ),
    (
        "res oldVdst src0 scale dstLoHiSel:i1",
        "cvt_scalef32_pk_bf8_bf16 cvt_scalef32_pk_bf8_f16 cvt_scalef32_pk_fp8_bf16 cvt_scalef32_pk_fp8_f16",
    ),
    ("res oldVdst src0 src1 scale dstLoHiSel:i1", "cvt_scalef32_pk_bf8_f32 cvt_scalef32_pk_fp8_f32"),
    (
        "res src scale srcLoHiSel:i1",
        "cvt_scalef32_pk_bf16_bf8 cvt_scalef32_pk_bf16_fp8 cvt_scalef32_pk_f16_bf8 "
        "cvt_scalef32_pk_f16_fp8 cvt_scalef32_pk_f32_bf8 cvt_scalef32_pk_f32_fp8",
    ),
    ("res oldVdst src scale dstSelIndex:i32", "cvt_scalef32_pk_fp4_bf16 cvt_scalef32_pk_fp4_f16"),
    ("res oldVdst src0 src1 scale dstSelIndex:i32", "cvt_scalef32_pk_fp4_f32"),
    (
        "res oldVdst src0 seed scale dstSelIndex:i32",
        "cvt_scalef32_sr_bf8_bf16 cvt_scalef32_sr_bf8_f16 cvt_scalef32_sr_bf8_f32 "
        "cvt_scalef32_sr_fp8_bf16 cvt_scalef32_sr_fp8_f16 cvt_scalef32_sr_fp8_f32",
    ),
    (
        "res src seed scale",
        "cvt_scalef32_sr_pk16_bf6_bf16 cvt_scalef32_sr_pk16_bf6_f16 cvt_scalef32_sr_pk16_bf6_f32 "
        "cvt_scalef32_sr_pk16_fp6_bf16 cvt_scalef32_sr_pk16_fp6_f16 cvt_scalef32_sr_pk16_fp6_f32 "
        "cvt_scalef32_sr_pk32_bf6_bf16 cvt_scalef32_sr_pk32_bf6_f16 cvt_scalef32_sr_pk32_bf6_f32 "
        "cvt_scalef32_sr_pk32_fp6_bf16 cvt_scalef32_sr_pk32_fp6_f16 cvt_scalef32_sr_pk32_fp6_f32 "
        "cvt_scalef32_sr_pk8_bf8_bf16 cvt_scalef32_sr_pk8_bf8_f16 cvt_scalef32_sr_pk8_bf8_f32 "
        "cvt_scalef32_sr_pk8_fp4_bf16 cvt_scalef32_sr_pk8_fp4_f16 cvt_scalef32_sr_pk8_fp4_f32 "
        "cvt_scalef32_sr_pk8_fp8_bf16 cvt_scalef32_sr_pk8_fp8_f16 cvt_scalef32_sr_pk8_fp8_f32",
    ),
    (
        "res oldVdst src seed scale dstSelIndex:i32",
        "cvt_scalef32_sr_pk_fp4_bf16 cvt_scalef32_sr_pk_fp4_f16 cvt_scalef32_sr_pk_fp4_f32",
    ),
    ("res src0 src1 scale", "cvt_scalef32_2xpk16_bf6_f32 cvt_scalef32_2xpk16_fp6_f32"),
    ("res srcA srcB old byteSel:i32", "cvt_sr_bf8_f32 cvt_sr_fp8_f32"),
    ("res old src dppCtrl:i32 rowMask:i32 bankMask:i32 boundCtrl:i1", "update_dpp"),
    ("barrierPtr * MEMORY", "ds_atomic_async_barrier_arrive_b64"),
    ("res barrierPtr val * MEMORY", "ds_atomic_barrier_arrive_rtn_b64"),
    ("res index src", "ds_bpermute"),
    (
        "res ptr * MEMORY",
        "ds_load_tr16_b128 ds_load_tr4_b64 ds_load_tr6_b96 ds_load_tr8_b64 ds_read_tr16_b64_ "
        "ds_read_tr4_b64_ ds_read_tr6_b96_ ds_read_tr8_b64_ global_load_tr4_b64 global_load_tr6_b96 "
        "global_load_tr_b128 global_load_tr_b64",
    ),
    ("res src offset", "ds_swizzle"),
    ("res src0 src1 src2", "fmed3"),
    ("ptr * cachePolicy:i32 MEMORY", "flat_prefetch global_prefetch"),
    ("res ptr", "s_get_named_barrier_state"),
    (
        "globalPtr ldsPtr size:i32 offset:i32 * aux:i32 MEMORY",
        "global_load_async_lds global_load_lds load_async_to_lds load_to_lds",
    ),
    (
        "globalPtr ldsPtr offset:i32 * aux:i32 MEMORY",
        "global_load_async_to_lds_b128 global_load_async_to_lds_b32 global_load_async_to_lds_b64 "
        "global_load_async_to_lds_b8 global_store_async_from_lds_b128 global_store_async_from_lds_b32 "
        "global_store_async_from_lds_b64 global_store_async_from_lds_b8",
    ),
    ("variant:i32", "iglp_opt"),
    ("res base stride numRecords flags", "make_buffer_rsrc"),
    ("res in0 in1 * arg_attrs:raw res_attrs:raw", "mbcnt_hi mbcnt_lo"),
    ("res old src fi:i1 boundControl:i1", "permlane16_swap permlane32_swap"),
    ("res old src0 src1 fi:i1 boundControl:i1", "permlane16_var permlanex16_var"),
    ("res old src0 src1 src2 fi:i1 boundControl:i1", "permlanex16"),
    ("res rsrc offset * aux:i32 MEMORY", "ptr_s_buffer_load"),
    ("res src cmp rsrc offset soffset * aux:i32", "raw_buffer_atomic_cmpswap"),
    (
        "res vdata rsrc offset soffset * aux:i32",
        "raw_buffer_atomic_fadd raw_buffer_atomic_fmax raw_buffer_atomic_smax raw_buffer_atomic_umin",
    ),
    ("res rsrc offset soffset * aux:i32", "raw_buffer_load"),
    ("vdata rsrc offset soffset * aux:i32", "raw_buffer_store"),
    ("res src cmp rsrc offset soffset * aux:i32 MEMORY", "raw_ptr_buffer_atomic_cmpswap"),
    (
        "res vdata rsrc offset soffset * aux:i32 MEMORY",
        "raw_ptr_buffer_atomic_fadd raw_ptr_buffer_atomic_fmax raw_ptr_buffer_atomic_smax raw_ptr_buffer_atomic_umin",
    ),
    ("rsrc ldsPtr size voffset soffset offset * aux:i32 MEMORY", "raw_ptr_buffer_load_async_lds"),
    ("rsrc ldsPtr size voffset soffset offset * aux:i32 MEMORY", "raw_ptr_buffer_load_lds"),
    ("res rsrc offset soffset * aux:i32 MEMORY", "raw_ptr_buffer_load"),
    ("vdata rsrc offset soffset * aux:i32 MEMORY", "raw_ptr_buffer_store"),
    ("res src", "readfirstlane"),
    ("res src0 src1", "readlane"),
    (
        "count:i16",
        "s_nop s_wait_asynccnt s_wait_dscnt s_wait_expcnt s_wait_loadcnt s_wait_storecnt "
        "s_wait_tensorcnt wait_asyncmark",
    ),
    ("count:i32", "s_sleep"),
    ("bitfield:i32", "s_waitcnt"),
    ("mask:sched", "sched_barrier"),
    ("mask:sched size:i32 groupId:i32", "sched_group_barrier"),
    ("priority:i16", "s_setprio"),
    ("dgroup0 dgroup1 dgroup2 dgroup3 dgroup4 * cachePolicy:i32 MEMORY", "tensor_load_to_lds tensor_store_from_lds"),
    (
        "res a b c",
        "dot4_f32_bf8_bf8_ dot4_f32_bf8_fp8_ dot4_f32_fp8_bf8_ dot4_f32_fp8_fp8_ fdot2_bf16_bf16_ "
        "fdot2_f16_f16_ wmma_f32_16x16x16_bf16_ wmma_f32_16x16x16_bf8_bf8_ wmma_f32_16x16x16_bf8_fp8_ "
        "wmma_f32_16x16x16_f16_ wmma_f32_16x16x16_fp8_bf8_ wmma_f32_16x16x16_fp8_fp8_",
    ),
    ("res a b c * clamp:i1", "fdot2_ fdot2_f32_bf16_ sdot2_ sdot4_ sdot8_ udot2_ udot4_ udot8_"),
    (
        "res a b c cbsz:i32 abid:i32 blgp:perm_b",
        "mfma_f32_16x16x16bf16_1k_ mfma_f32_16x16x16f16_ mfma_f32_16x16x1f32_ mfma_f32_16x16x2bf16_ "
        "mfma_f32_16x16x32_bf16_ mfma_f32_16x16x32_bf8_bf8_ mfma_f32_16x16x32_bf8_fp8_ "
        "mfma_f32_16x16x32_f16_ mfma_f32_16x16x32_fp8_bf8_ mfma_f32_16x16x32_fp8_fp8_ "
        "mfma_f32_16x16x4bf16_1k_ mfma_f32_16x16x4f16_ mfma_f32_16x16x4f32_ mfma_f32_16x16x8_xf32_ "
        "mfma_f32_16x16x8bf16_ mfma_f32_32x32x16_bf16_ mfma_f32_32x32x16_bf8_bf8_ "
        "mfma_f32_32x32x16_bf8_fp8_ mfma_f32_32x32x16_f16_ mfma_f32_32x32x16_fp8_bf8_ "
        "mfma_f32_32x32x16_fp8_fp8_ mfma_f32_32x32x1f32_ mfma_f32_32x32x2bf16_ mfma_f32_32x32x2f32_ "
        "mfma_f32_32x32x4_xf32_ mfma_f32_32x32x4bf16_ mfma_f32_32x32x4bf16_1k_ mfma_f32_32x32x4f16_ "
        "mfma_f32_32x32x8bf16_1k_ mfma_f32_32x32x8f16_ mfma_f32_4x4x1f32_ mfma_f32_4x4x2bf16_ "
        "mfma_f32_4x4x4bf16_1k_ mfma_f32_4x4x4f16_ mfma_i32_16x16x16i8_ mfma_i32_16x16x32_i8_ "
        "mfma_i32_16x16x4i8_ mfma_i32_16x16x64_i8_ mfma_i32_32x32x16_i8_ mfma_i32_32x32x32_i8_ "
        "mfma_i32_32x32x4i8_ mfma_i32_32x32x8i8_ mfma_i32_4x4x4i8_",
    ),
    ("res a b c cbsz:i32 abid:i32 blgp:neg", "mfma_f64_16x16x4f64_ mfma_f64_4x4x4f64_"),
    (
        "res a b c cbsz:format blgp:format opselA:i32 scaleA opselB:i32 scaleB",
        "mfma_scale_f32_16x16x128_f8f6f4_ mfma_scale_f32_32x32x64_f8f6f4_",
    ),
    (
        "res a b c index cbsz:i32 abid:i32",
        "smfmac_f32_16x16x128_bf8_bf8_ smfmac_f32_16x16x128_bf8_fp8_ smfmac_f32_16x16x128_fp8_bf8_ "
        "smfmac_f32_16x16x128_fp8_fp8_ smfmac_f32_16x16x32_bf16_ smfmac_f32_16x16x32_f16_ "
        "smfmac_f32_16x16x64_bf16_ smfmac_f32_16x16x64_bf8_bf8_ smfmac_f32_16x16x64_bf8_fp8_ "
        "smfmac_f32_16x16x64_f16_ smfmac_f32_16x16x64_fp8_bf8_ smfmac_f32_16x16x64_fp8_fp8_ "
        "smfmac_f32_32x32x16_bf16_ smfmac_f32_32x32x16_f16_ smfmac_f32_32x32x32_bf16_ "
        "smfmac_f32_32x32x32_bf8_bf8_ smfmac_f32_32x32x32_bf8_fp8_ smfmac_f32_32x32x32_f16_ "
        "smfmac_f32_32x32x32_fp8_bf8_ smfmac_f32_32x32x32_fp8_fp8_ smfmac_f32_32x32x64_bf8_bf8_ "
        "smfmac_f32_32x32x64_bf8_fp8_ smfmac_f32_32x32x64_fp8_bf8_ smfmac_f32_32x32x64_fp8_fp8_ "
        "smfmac_i32_16x16x128_i8_ smfmac_i32_16x16x64_i8_ smfmac_i32_32x32x32_i8_ "
        "smfmac_i32_32x32x64_i8_",
    ),
    (
        "res a b c * signA:i1 signB:i1 clamp:i1",
        "sudot4_ sudot8_ wmma_i32_16x16x16_iu4_ wmma_i32_16x16x16_iu8_ wmma_i32_16x16x32_iu4_",
    ),
    (
        "res a b c index",
        "swmmac_bf16_16x16x32_bf16_ swmmac_f16_16x16x32_f16_ swmmac_f32_16x16x32_bf16_ "
        "swmmac_f32_16x16x32_bf8_bf8_ swmmac_f32_16x16x32_bf8_fp8_ swmmac_f32_16x16x32_f16_ "
        "swmmac_f32_16x16x32_fp8_bf8_ swmmac_f32_16x16x32_fp8_fp8_",
    ),
    (
        "res a b c index * signA:i1 signB:i1 reuseA:i1 reuseB:i1",
        "swmmac_bf16_16x16x64_bf16_ swmmac_bf16f32_16x16x64_bf16_ swmmac_f16_16x16x64_f16_ "
        "swmmac_f32_16x16x64_bf16_ swmmac_f32_16x16x64_f16_",
    ),
    (
        "res a b c index * reuseA:i1 reuseB:i1",
        "swmmac_f16_16x16x128_bf8_bf8_ swmmac_f16_16x16x128_bf8_fp8_ swmmac_f16_16x16x128_fp8_bf8_ "
        "swmmac_f16_16x16x128_fp8_fp8_ swmmac_f32_16x16x128_bf8_bf8_ swmmac_f32_16x16x128_bf8_fp8_ "
        "swmmac_f32_16x16x128_fp8_bf8_ swmmac_f32_16x16x128_fp8_fp8_",
    ),
    (
        "res a b c index * signA:i1 signB:i1 clamp:i1",
        "swmmac_i32_16x16x32_iu4_ swmmac_i32_16x16x32_iu8_ swmmac_i32_16x16x64_iu4_",
    ),
    ("res a b c index * signA:i1 signB:i1 reuseA:i1 reuseB:i1 clamp:i1", "swmmac_i32_16x16x128_iu8_"),
    ("res a b c * opsel:i1", "wmma_bf16_16x16x16_bf16_ wmma_f16_16x16x16_f16_"),
    (
        "res a b c * modC:mod_c reuseA:i1 reuseB:i1",
        "wmma_bf16_16x16x32_bf16_ wmma_bf16f32_16x16x32_bf16_ wmma_f16_16x16x128_bf8_bf8_ "
        "wmma_f16_16x16x128_bf8_fp8_ wmma_f16_16x16x128_fp8_bf8_ wmma_f16_16x16x128_fp8_fp8_ "
        "wmma_f16_16x16x32_f16_ wmma_f16_16x16x64_bf8_bf8_ wmma_f16_16x16x64_bf8_fp8_ "
        "wmma_f16_16x16x64_fp8_bf8_ wmma_f16_16x16x64_fp8_fp8_ wmma_f32_16x16x128_bf8_bf8_ "
        "wmma_f32_16x16x128_bf8_fp8_ wmma_f32_16x16x128_fp8_bf8_ wmma_f32_16x16x128_fp8_fp8_ "
        "wmma_f32_16x16x32_bf16_ wmma_f32_16x16x32_f16_ wmma_f32_16x16x4_f32_ "
        "wmma_f32_16x16x64_bf8_bf8_ wmma_f32_16x16x64_bf8_fp8_ wmma_f32_16x16x64_fp8_bf8_ "
        "wmma_f32_16x16x64_fp8_fp8_",
    ),
    ("res a b c * signA:i1 signB:i1 reuseA:i1 reuseB:i1 clamp:i1", "wmma_i32_16x16x64_iu8_"),
    (
        "res a b c scaleA scaleB * fmtA:format fmtB:format modC:mod_c SCALES",
        "wmma_scale16_f32_16x16x128_f8f6f4_ wmma_scale_f32_16x16x128_f8f6f4_",
    ),
    (
        "res a b c scaleA scaleB * modC:mod_c SCALES",
        "wmma_scale16_f32_32x16x128_f4_ wmma_scale_f32_32x16x128_f4_",
    ),
)

# Names -> features; a chip that has one of them has the instruction. `*` at the end of a name stands for any rest. First
# match wins; names that match nothing exist everywhere.
# [L] = LLVM 22.1 IntrinsicsAMDGPU and the chips' feature lists.
_FEATURES: tuple[tuple[str, str], ...] = (
    ("tanh", "tanh"),
    ("asyncmark wait_asyncmark", "lds_dma_b128 async_lds"),
    (
        "s_barrier_signal s_barrier_wait s_barrier_signal_isfirst s_barrier_leave s_get_barrier_state wave_id",
        "split_barrier",
    ),
    (
        "s_barrier_init s_barrier_join s_barrier_signal_var s_wakeup_barrier s_get_named_barrier_state cluster_* "
        "ds_atomic_*",
        "clusters",
    ),
    (
        "cvt_f32_fp8 cvt_f32_bf8 cvt_pk_f32_fp8 cvt_pk_f32_bf8 cvt_pk_fp8_f32 cvt_pk_bf8_f32 cvt_sr_fp8_f32 "
        "cvt_sr_bf8_f32",
        "fp8_cvt",
    ),
    (
        "cvt_scale_pk* cvt_scalef32_pk8_* cvt_scalef32_pk16_* cvt_scalef32_sr_pk8_* cvt_scalef32_sr_pk16_*",
        "cvt_scale_pk8",
    ),
    ("cvt_scalef32_*", "cvt_scalef32"),
    ("ds_load_tr*", "ds_load_tr"),
    ("ds_read_tr*", "ds_read_tr"),
    ("global_load_tr4_* global_load_tr6_*", "ds_load_tr"),
    ("global_load_tr_*", "global_load_tr"),
    (
        "load_to_lds global_load_lds load_async_to_lds global_load_async_lds raw_ptr_buffer_load_lds "
        "raw_ptr_buffer_load_async_lds",
        "lds_dma",
    ),
    (
        "global_load_async_to_lds_* global_store_async_from_lds_* flat_prefetch global_prefetch s_wait_asynccnt",
        "async_lds",
    ),
    ("iglp_opt", "mfma"),
    ("permlane32_swap", "cvt_scalef32"),  # gfx950: a wave of 32 lanes has no halves of 32
    ("permlane16_swap", "permlane_swap"),
    ("permlane16_var permlanex16_var", "split_barrier"),
    ("permlanex16", "permlanex16"),
    ("s_wait_tensorcnt tensor_*", "tdm"),
    ("s_wait_expcnt", "wmma_gfx12"),
    ("s_wait_dscnt s_wait_loadcnt s_wait_storecnt", "wait_counters"),
    ("s_waitcnt", "mfma wmma_gfx11 wmma_gfx12"),
    ("fdot2", "mfma wmma_gfx11 wmma_gfx12"),
    (
        "swmmac_f32_16x16x64_* swmmac_f16_16x16x64_* swmmac_bf16_16x16x64_* swmmac_bf16f32_16x16x64_* "
        "swmmac_f32_16x16x128_* swmmac_f16_16x16x128_* swmmac_i32_16x16x128_*",
        "wmma_gfx1250",
    ),
    ("swmmac_*", "wmma_gfx12"),
    ("dot4_f32_*", "wmma_gfx12"),
    ("sudot*", "wmma"),
    ("wmma_bf16f32_*", "wmma_gfx1250"),
)
# Arithmetic whose operands all have the type of the result; other types than these end LLVM's process.
FLOATS = {
    **dict.fromkeys(("rcp", "rsq", "sqrt"), ("f32", "f16", "f64")),
    **dict.fromkeys(("exp2", "log", "sin", "cos", "fmed3", "tanh"), ("f32", "f16")),
}
# Result types that MLIR's verifier does not compare with what the instruction gives: another type leaves elements
# undefined, or ends LLVM's process. [L]
_HALVES = ("i16", "f16", "bf16")
_RESULTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "cluster_id_* cluster_workgroup_id_* wave_id wavefrontsize workgroup_id_* workitem_id_* cvt_pk_bf8_f32 "
        "cvt_pk_fp8_f32 cvt_sr_bf8_f32 cvt_sr_fp8_f32",
        ("i32",),
    ),
    ("cvt_f32_bf8 cvt_f32_fp8", ("f32",)),
    ("cvt_pk_f32_bf8 cvt_pk_f32_fp8", ("vector<2xf32>",)),
    ("cvt_pkrtz", ("vector<2xf16>",)),
    ("ds_load_tr16_b128 global_load_tr_b128", tuple(f"vector<8x{t}>" for t in _HALVES)),
    ("ds_read_tr16_b64", tuple(f"vector<4x{t}>" for t in _HALVES)),
    (
        "ds_load_tr4_b64 ds_load_tr8_b64 ds_read_tr4_b64 ds_read_tr8_b64 global_load_tr4_b64 global_load_tr_b64",
        ("vector<2xi32>",),
    ),
    ("ds_load_tr6_b96 ds_read_tr6_b96 global_load_tr6_b96", ("vector<3xi32>",)),
)
# What the field of a compile-time argument holds: (names as above, argument) -> smallest and largest value. Beyond it LLVM
# cuts the number off, or ends the process (barrier ids).
_LIMITS: tuple[tuple[str, str, tuple[int, int]], ...] = (
    ("cvt_*", "byte_sel", (0, 3)),
    ("cvt_*", "src_sel_index", (0, 3)),
    ("cvt_*", "dst_sel_index", (0, 3)),
    ("cvt_*", "scale_sel", (0, 15)),
    ("mfma_scale_*", "opsel_a", (0, 3)),
    ("mfma_scale_*", "opsel_b", (0, 3)),
    ("update_dpp", "row_mask", (0, 15)),
    ("update_dpp", "bank_mask", (0, 15)),
    ("iglp_opt", "variant", (0, 3)),
    ("sched_group_barrier", "size", (0, 0x7FFFFFFF)),
    ("sched_group_barrier", "group_id", (0, 0x7FFFFFFF)),
    ("s_setprio", "priority", (0, 0xFFFF)),  # of which chips take the lower two bits; public kernels write 15
    ("s_nop", "count", (0, 15)),
    ("s_wait_* wait_asyncmark", "count", (0, 0x7FFF)),
    ("s_waitcnt", "bitfield", (0, 0xFFFF)),
)
_BARRIER_IDS = {True: (-4, 16), False: (-2, -1)}  # -1 workgroup, -2 trap handler; with clusters -3, -4 and named ones
_SCALES = "scaleAType:scale_row fmtScaleA:scale_format scaleBType:scale_row fmtScaleB:scale_format reuseA:i1 reuseB:i1"
_MEMORY = "alias_scopes:raw noalias_scopes:raw tbaa:raw"
_JOINED = re.compile(r"(wmma_.*)_((?:fp8|bf8)_(?:fp8|bf8))$")


@record
class OpSpec:
    """One instruction. `params` are (Python name, MLIR name, kind); kind "" is an SSA operand, "res" the result type.

    `is_op_class`: the reference exports the name as an op class, so that callers write `.result` after the call.
    """

    name: str
    op: str
    params: tuple[tuple[str, str, str], ...]
    options: tuple[tuple[str, str, str], ...]
    is_op_class: bool = False

    @property
    def has_result(self) -> bool:
        """Whether the instruction gives a value."""
        return bool(self.params) and self.params[0][2] == "res"

    @property
    def text(self) -> str:
        """The call as a user writes it."""
        optional = [f"{p}=None" for p, _, _ in self.options]
        return f"{self.name}({', '.join([p for p, _, _ in self.params] + (['*', *optional] if optional else []))})"


@cache
def _rows() -> dict[str, str]:
    return {name: signature for signature, listed in SIGNATURES for name in listed.split()}


@cache
def names() -> tuple[str, ...]:
    """Return the names under which instructions can be called, without the alternative `..._` forms."""
    return tuple(name.rstrip("_") for name in _rows())


def lookup(name: str) -> OpSpec | None:
    """Return the instruction called `name`; both `mfma_f32_16x16x16f16` and the bindings' `..._` form are known."""
    base = name.rstrip("_")
    is_op_class = name == base and base + "_" in _rows()
    signature = _rows().get(base, _rows().get(base + "_"))
    if signature is None:
        return None
    required, _, optional = signature.replace("MEMORY", _MEMORY).replace("SCALES", _SCALES).partition("*")
    return OpSpec(base, _op_name(base), _params(required), _params(optional), is_op_class)


def _is_listed(name: str, listed: str) -> bool:
    """Return whether `name` is one of the names in `listed`; a regular expression would take a millisecond to compile."""
    return any(name.startswith(known[:-1]) if known[-1] == "*" else name == known for known in listed.split())


def chips_with(name: str) -> tuple[str, ...]:
    """Return the chips that have the instruction `name`."""
    if name in _matrix_chips():
        return _matrix_chips()[name]
    for listed, features in _FEATURES:
        if _is_listed(name, listed):
            return tuple(c for c in chips.names() if any(chips.get(c).has(f) for f in features.split()))
    return () if name.startswith(("mfma_", "wmma_")) else chips.names()


def results(name: str) -> tuple[str, ...]:
    """Return the types that the result of `name` can have, where the bindings do not check them; else nothing."""
    return next((types for listed, types in _RESULTS if _is_listed(name, listed)), ())


@cache
def limits(name: str, arch: str) -> dict[str, tuple[int, int]]:
    """Return (smallest, largest) value of the compile-time arguments of `name` that do not take all numbers."""
    found = {param: most for listed, param, most in _LIMITS if _is_listed(name, listed)}
    if name.startswith("s_barrier_") and "id" in {p for p, _, _ in lookup(name).params}:
        found["id"] = _BARRIER_IDS[chips.get(arch).has("clusters")]
    return found


@cache
def _matrix_chips() -> dict[str, tuple[str, ...]]:
    from flydsl.atoms.matrix_rows import ROWS, SMFMAC_ROWS

    found: dict[str, tuple[str, ...]] = {}
    for row in ROWS + SMFMAC_ROWS:
        found[row.python_name] = tuple(dict.fromkeys(found.get(row.python_name, ()) + row.chips))
    return found


def _op_name(name: str) -> str:
    if name in ("ds_bpermute", "ds_swizzle"):
        return f"rocdl.{name}"
    joined = _JOINED.match(name)
    if joined:
        return f"rocdl.{joined[1].replace('_', '.')}.{joined[2]}"
    return f"rocdl.{name.replace('_', '.')}"


def _params(text: str) -> tuple[tuple[str, str, str], ...]:
    out = []
    for word in text.split():
        name, _, kind = word.partition(":")
        python = re.sub(r"[A-Z]", lambda m: "_" + m[0].lower(), name)
        out.append((python, name, "res" if name == "res" else kind))
    return tuple(out)
