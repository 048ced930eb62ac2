"""torch's `cuda` device without a GPU: programs written for `device="cuda"` run on host memory, their kernels in
the simulator.

`tensors` says which tensors count as on the GPU and answers `device`, `is_cuda` and the like; `cuda_module` stands
in for `torch.cuda`:
devices, streams, events; `foreign` refuses GPU code that is not ours. Used by `flydsl sim`; nothing here is
imported unless asked for.

    from flydsl.runtime.torch_cuda import simulated_cuda
    with simulated_cuda(): ...
"""

from flydsl.runtime.torch_cuda.install import simulated_cuda

__all__ = ["simulated_cuda"]
