"""What kernels call: types, operators and functions of the `fx` namespace."""
