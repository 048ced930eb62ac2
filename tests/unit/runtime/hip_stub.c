/* A stand-in for libamdhip64: it runs nothing, records every call as a line of text, and copies the kernarg bytes of a launch as a
 * driver would: parameter by parameter, with the offsets and sizes that the test read from the code object. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
typedef void (*loaded_fn)(int module, const void *image, uint64_t bytes);
struct layout { char name[128]; int count; int offset[MOST]; int size[MOST]; int bytes; };
struct function { int module, device; char name[128]; };

static char text[1 << 20];
static int length, devices = 1, modules, functions, streams_open, failing_status, fail_after;
static char failing[64];
static char chips[8][256], buses[8][32];
static int pages[8], pinned_count, last_error;
static struct { uintptr_t first, end; } pinned[16];
static int module_device[MOST];
static struct function function_table[MOST];
static struct layout layouts[MOST];
static int layout_count;
static loaded_fn on_load;
static __thread int current;

static int note(const char *call, const char *rest) {
    static int busy;
    while (__sync_lock_test_and_set(&busy, 1)) ;
    length += snprintf(text + length, sizeof text - length, "%s %s\n", call, rest);
    __sync_lock_release(&busy);
    if (!strcmp(call, failing) && fail_after-- <= 0) return failing_status;
    return 0;
}
#define NOTE(call, ...) char line[8192]; snprintf(line, sizeof line, __VA_ARGS__); int status = note(call, line); if (status) return status

const char *stub_log(void) { return text; }
void stub_reset(int count, loaded_fn callback) {
    length = modules = functions = layout_count = current = failing_status = 0; text[0] = failing[0] = 0;
    memset(chips, 0, sizeof chips); memset(buses, 0, sizeof buses); memset(pages, 0, sizeof pages);
    pinned_count = last_error = 0;
    devices = count; on_load = callback;
}
void stub_chip(int device, const char *name, const char *bus) { strncpy(chips[device], name, 255); strncpy(buses[device], bus, 31); }
void stub_pages(int device, int answer) { pages[device] = answer; }
void stub_pin(uintptr_t address, uint64_t bytes) { pinned[pinned_count].first = address; pinned[pinned_count++].end = address + bytes; }
int stub_last_error(void) { return last_error; }
void stub_fail(const char *call, int status, int after) { strncpy(failing, call, sizeof failing - 1); failing_status = status; fail_after = after; }
void stub_layout(const char *name, int bytes, int count, const int *offset, const int *size) {
    struct layout *l = &layouts[layout_count++];
    strncpy(l->name, name, sizeof l->name - 1); l->bytes = bytes; l->count = count;
    memcpy(l->offset, offset, count * sizeof(int)); memcpy(l->size, size, count * sizeof(int));
}

int hipInit(unsigned flags) { (void)flags; return 0; }
int hipGetDeviceCount(int *count) { *count = devices; return devices ? 0 : 100; }
int hipGetDevice(int *device) { *device = current; return 0; }
int hipSetDevice(int device) { NOTE("hipSetDevice", "%d", device); if (device >= devices) return 101; current = device; return 0; }
int hipDeviceSynchronize(void) { NOTE("hipDeviceSynchronize", "%d", current); return 0; }
const char *hipGetErrorName(int status) { return status == 209 ? "hipErrorNoBinaryForGpu" : status == 2 ? "hipErrorOutOfMemory" : "hipErrorUnknown"; }
const char *hipGetErrorString(int status) { return status == 209 ? "no kernel image is available" : status == 2 ? "out of memory" : "unknown"; }

/* hipDeviceProp_tR0600, laid out as HIP's public header does. */
struct properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t global_bytes, lds_block;
    int regs_block, warp;
    size_t pitch;
    int threads_block, threads_dim[3], grid[3], clock;
    size_t constant_bytes;
    int major, minor;
    size_t texture_align, texture_pitch;
    int overlap, cus, timeout, integrated, map_host, compute_mode;
    int tex1d, tex1d_mip, tex1d_linear, tex2d[2], tex2d_mip[2], tex2d_linear[3], tex2d_gather[2], tex3d[3], tex3d_alt[3], tex_cube;
    int tex1d_layered[2], tex2d_layered[3], tex_cube_layered[2], surf1d, surf2d[2], surf3d[3], surf1d_layered[2], surf2d_layered[3], surf_cube;
    int surf_cube_layered[2];
    size_t surface_align;
    int concurrent, ecc, bus, device, domain, tcc, async_engines, unified, memory_clock, memory_bus, l2, l2_persisting, threads_cu, priorities;
    int global_l1, local_l1;
    size_t lds_cu;
    int regs_cu, managed, multi_board, board_group, native_atomics, ratio, pageable, concurrent_managed, preemption, host_registered, cooperative;
    int cooperative_multi;
    size_t lds_optin;
    int page_tables, direct_managed, blocks_cu, access_window;
    size_t lds_reserved;
    int host_register, sparse, register_read_only, semaphores, pools, rdma;
    unsigned rdma_flush;
    int rdma_order;
    unsigned pool_handles;
    int deferred, ipc_events, clusters, unified_functions, reserved[63], hip_reserved[32];
    char gcn_arch_name[256];
};
#ifndef OLD_HIP
int hipGetDevicePropertiesR0600(struct properties *p, int device) {
    if (device >= devices) return 101;
    memset(p, 0, sizeof *p);
    strcpy(p->name, "gfx000 is not its chip");
    strcpy(p->gcn_arch_name, chips[device]);
    p->pageable = pages[device];
    return 0;
}
#endif
int hipDeviceGetPCIBusId(char *text, int length, int device) {
    if (device >= devices || !buses[device][0]) return 101;
    snprintf(text, length, "%s", buses[device]);
    return 0;
}

int hipModuleLoadData(void **module, const void *image) {
    NOTE("hipModuleLoadData", "device=%d", current);
    const unsigned char *elf = image;
    if (memcmp(elf, "\x7f" "ELF", 4)) return 200;
    uint64_t table; uint16_t entry, count;
    memcpy(&table, elf + 40, 8); memcpy(&entry, elf + 58, 2); memcpy(&count, elf + 60, 2);
    module_device[modules] = current;
    if (on_load) on_load(modules, image, table + (uint64_t)entry * count);
    *module = (void *)(uintptr_t)(++modules);
    return 0;
}
int hipModuleUnload(void *module) { NOTE("hipModuleUnload", "%d", (int)(uintptr_t)module); return 0; }
int hipModuleGetFunction(void **function, void *module, const char *name) {
    NOTE("hipModuleGetFunction", "%s", name);
    int i, m = (int)(uintptr_t)module - 1;
    for (i = 0; i < layout_count && strcmp(layouts[i].name, name); i++) ;
    if (i == layout_count) return 500;
    struct function *f = &function_table[functions++];
    f->module = m; f->device = module_device[m]; strncpy(f->name, name, sizeof f->name - 1);
    *function = (void *)(uintptr_t)functions;
    return 0;
}
static int launched(const char *call, void *function, const unsigned *grid, const unsigned *block, unsigned lds, void *stream,
                    void **parameters, void **extra, const char *more) {
    struct function *f = &function_table[(int)(uintptr_t)function - 1];
    struct layout *l = layouts;
    while (strcmp(l->name, f->name)) l++;
    unsigned char kernarg[4096]; char hex[8192] = "";
    memset(kernarg, 0xee, sizeof kernarg);
    for (int i = 0; i < l->count; i++) memcpy(kernarg + l->offset[i], parameters[i], l->size[i]);
    for (int i = 0; i < l->bytes; i++) sprintf(hex + 2 * i, "%02x", kernarg[i]);
    if (extra) return 1;
    if (f->device != current) return 400; /* a handle of another device */
    NOTE(call, "%s device=%d grid=%u,%u,%u block=%u,%u,%u lds=%u stream=%#lx kernarg=%.4000s%s", f->name, current, grid[0], grid[1], grid[2],
         block[0], block[1], block[2], lds, (unsigned long)(uintptr_t)stream, hex, more);
    return 0;
}
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds,
                          void *stream, void **parameters, void **extra) {
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return launched("hipModuleLaunchKernel", function, grid, block, lds, stream, parameters, extra, "");
}
#ifndef OLD_HIP
/* HIP_LAUNCH_CONFIG and hipLaunchAttribute of HIP's public header; 4 is hipLaunchAttributeClusterDimension. */
struct attribute { int id; char pad[4]; union { char bytes[64]; struct { unsigned x, y, z; } cluster; } value; };
struct config { unsigned gx, gy, gz, bx, by, bz, lds; void *stream; struct attribute *attributes; unsigned count; };
int hipDrvLaunchKernelEx(const struct config *c, void *function, void **parameters, void **extra) {
    unsigned grid[] = {c->gx, c->gy, c->gz}, block[] = {c->bx, c->by, c->bz};
    char more[128] = "";
    for (unsigned i = 0; i < c->count; i++) {
        struct attribute *a = &c->attributes[i];
        snprintf(more + strlen(more), sizeof more - strlen(more), " attribute%d=%u,%u,%u", a->id, a->value.cluster.x, a->value.cluster.y,
                 a->value.cluster.z);
    }
    return launched("hipDrvLaunchKernelEx", function, grid, block, c->lds, c->stream, parameters, extra, more);
}
#endif
int hipFuncSetAttribute(const void *function, int attribute, int value) { NOTE("hipFuncSetAttribute", "%d %d", attribute, value); return 0; }
int hipStreamSynchronize(void *stream) { NOTE("hipStreamSynchronize", "%#lx", (unsigned long)(uintptr_t)stream); return 0; }
int hipEventCreate(void **event) { NOTE("hipEventCreate", ""); *event = (void *)0x77; return 0; }
int hipEventDestroy(void *event) { NOTE("hipEventDestroy", ""); return 0; }
int hipEventRecord(void *event, void *stream) { NOTE("hipEventRecord", "%#lx", (unsigned long)(uintptr_t)stream); return 0; }
int hipEventSynchronize(void *event) { NOTE("hipEventSynchronize", ""); return 0; }
int hipEventElapsedTime(float *ms, void *a, void *b) { NOTE("hipEventElapsedTime", ""); *ms = 1.5f; return 0; }
int hipHostMalloc(void **p, size_t bytes, unsigned flags) { NOTE("hipHostMalloc", "%zu", bytes); *p = calloc(1, bytes); return 0; }
int hipHostGetDevicePointer(void **there, void *here, unsigned flags) {
    NOTE("hipHostGetDevicePointer", "%u", flags);
    for (int i = 0; i < pinned_count; i++)
        if ((uintptr_t)here >= pinned[i].first && (uintptr_t)here < pinned[i].end) { *there = here; return 0; }
    return last_error = 1;
}
int hipGetLastError(void) { int status = last_error; last_error = 0; return status; }
int hipHostFree(void *p) { NOTE("hipHostFree", ""); free(p); return 0; }
