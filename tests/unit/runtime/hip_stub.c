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
static int module_device[MOST];
static struct function function_table[MOST];
static struct layout layouts[MOST];
static int layout_count;
static loaded_fn on_load;
static __thread int current;

static int note(const char *call, const char *rest) {
    length += snprintf(text + length, sizeof text - length, "%s %s\n", call, rest);
    if (!strcmp(call, failing) && fail_after-- <= 0) return failing_status;
    return 0;
}
#define NOTE(call, ...) char line[8192]; snprintf(line, sizeof line, __VA_ARGS__); int status = note(call, line); if (status) return status

const char *stub_log(void) { return text; }
void stub_reset(int count, loaded_fn callback) {
    length = modules = functions = layout_count = current = failing_status = 0; text[0] = failing[0] = 0;
    devices = count; on_load = callback;
}
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
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds,
                          void *stream, void **parameters, void **extra) {
    struct function *f = &function_table[(int)(uintptr_t)function - 1];
    struct layout *l = layouts;
    while (strcmp(l->name, f->name)) l++;
    unsigned char kernarg[4096]; char hex[8192] = "";
    memset(kernarg, 0xee, sizeof kernarg);
    for (int i = 0; i < l->count; i++) memcpy(kernarg + l->offset[i], parameters[i], l->size[i]);
    for (int i = 0; i < l->bytes; i++) sprintf(hex + 2 * i, "%02x", kernarg[i]);
    if (extra) return 1;
    if (f->device != current) return 400; /* a handle of another device */
    NOTE("hipModuleLaunchKernel", "%s device=%d grid=%u,%u,%u block=%u,%u,%u lds=%u stream=%#lx kernarg=%.4000s", f->name, current, gx, gy, gz,
         bx, by, bz, lds, (unsigned long)(uintptr_t)stream, hex);
    return 0;
}
int hipFuncSetAttribute(const void *function, int attribute, int value) { NOTE("hipFuncSetAttribute", "%d %d", attribute, value); return 0; }
int hipStreamSynchronize(void *stream) { NOTE("hipStreamSynchronize", "%#lx", (unsigned long)(uintptr_t)stream); return 0; }
int hipEventCreate(void **event) { NOTE("hipEventCreate", ""); *event = (void *)0x77; return 0; }
int hipEventDestroy(void *event) { NOTE("hipEventDestroy", ""); return 0; }
int hipEventRecord(void *event, void *stream) { NOTE("hipEventRecord", "%#lx", (unsigned long)(uintptr_t)stream); return 0; }
int hipEventSynchronize(void *event) { NOTE("hipEventSynchronize", ""); return 0; }
int hipEventElapsedTime(float *ms, void *a, void *b) { NOTE("hipEventElapsedTime", ""); *ms = 1.5f; return 0; }
int hipHostMalloc(void **p, size_t bytes, unsigned flags) { NOTE("hipHostMalloc", "%zu", bytes); *p = calloc(1, bytes); return 0; }
int hipHostFree(void *p) { NOTE("hipHostFree", ""); free(p); return 0; }
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int block, size_t lds) {
    NOTE("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", "%d %zu", block, lds); *n = 4; return 0;
}
