"""Errors of AMD devices and the HIP library."""

from flydsl.diag.base import InternalError, MissingTool, Unsupported, UserError

__all__ = [
    "DeviceChip",
    "DevicesMixed",
    "HipFailed",
    "HipUnusable",
    "HostMemory",
    "KernelArguments",
    "MissingHip",
    "SimulatedCudaCapture",
    "SimulatedCudaDevice",
    "SimulatedCudaForeign",
    "SimulatedProgramMissing",
]


class MissingHip(MissingTool, ImportError):
    code = "FLY_NO_HIP"
    what = "the HIP runtime library (libamdhip64.so) is not found"
    why = "launching on an AMD GPU goes through it; looked for {tried}"
    fix = "install ROCm or a ROCm build of torch, set ROCM_PATH, or run in the simulator: FLYDSL_RUNTIME_KIND=sim"


class HipUnusable(MissingHip):
    code = "FLY_HIP_LIBRARY"
    what = "{library} cannot be used as the HIP runtime library: {problem}"
    why = "launching on an AMD GPU goes through its functions, and no other libamdhip64.so was found"
    fix = "repair or remove the file, set ROCM_PATH to a ROCm installation, or run in the simulator: FLYDSL_RUNTIME_KIND=sim"


class HipFailed(UserError, RuntimeError):
    code = "FLY_HIP"
    what = "{call} failed: {name} ({status})"
    why = "HIP says: {text}"
    fix = "run the kernel in the simulator (FLYDSL_RUNTIME_KIND=sim): it names the access or the limit that is wrong"


class DevicesMixed(UserError, ValueError):
    code = "FLY_DEVICES_MIXED"
    what = "the tensors of one launch are on several devices: {devices}"
    why = "a kernel runs on one GPU and reads its memory"
    fix = "move the tensors to one device: {moves}"


class HostMemory(UserError, ValueError):
    code = "FLY_HOST_MEMORY"
    what = "{names}: memory of the host, which GPU {device} cannot read"
    why = "a kernel reads the GPU's memory, pinned memory of the host, and any memory only where the driver pages it in (APUs, HSA_XNACK=1)"
    fix = "{moves}; or run in the simulator, which runs on host memory: FLYDSL_RUNTIME_KIND=sim"


class DeviceChip(UserError, RuntimeError):
    code = "FLY_DEVICE_CHIP"
    what = "`{kernel}` was compiled for {compiled}, but device {device} is {chip}"
    why = "a code object runs on one chip; ARCH, FLYDSL_GPU_ARCH and HSA_OVERRIDE_GFX_VERSION win over the device of the tensors"
    fix = "unset them and call the jit function, which compiles for the device of its tensors; or export for both chips (`flyc.export`)"


class KernelArguments(InternalError, TypeError):
    code = "FLY_KERNEL_ARGUMENTS"
    what = "`{kernel}` takes {expected} arguments in its code object, but the launch passes {given}"
    why = "the host program and the code object come from different compiles"
    fix = "clear the cache (`flydsl cache clear`) and report this with the kernel"


class SimulatedCudaDevice(UserError, RuntimeError):
    code = "FLY_SIM_CUDA_DEVICE"
    what = "there is no device cuda:{device}: {count} GPU(s) are simulated"
    why = "device numbers begin at 0"
    fix = "use a smaller number, or simulate more GPUs: `flydsl sim --devices N ...`"


class SimulatedCudaCapture(UserError, RuntimeError):
    code = "FLY_SIM_CUDA_CAPTURE"
    what = "{call} is not possible while a CUDA graph is captured"
    why = "{why}"
    fix = "do it before or after the capture; launch on the stream that captures: pass `torch.cuda.current_stream()`"


class SimulatedCudaForeign(Unsupported, RuntimeError):
    code = "FLY_SIM_CUDA_FOREIGN"
    what = "{thing} cannot run without a GPU"
    why = "`flydsl sim` runs FlyDSL kernels in the simulator and torch operations on the host. {detail}"
    fix = "leave this part out when the GPU is simulated, or run the program on a GPU"


class SimulatedProgramMissing(UserError, ValueError):
    code = "FLY_SIM_PROGRAM"
    what = "flydsl sim has nothing to run: {problem}"
    why = "it runs a Python program with the GPU simulated"
    fix = "flydsl sim script.py ARGUMENTS, or flydsl sim -m pytest ARGUMENTS"
