"""The ways in which numba compiles the kernels of lib: kept on disk, without Python's lock, without the C callback that nobody asks for.

That callback is a seventh of what there is to compile.
"""
import numba

OPTIONS = {"nogil": True, "cache": True, "no_cfunc_wrapper": True}
jit = numba.njit(error_model="numpy", **OPTIONS)
checked_jit = numba.njit(**OPTIONS)                     # where a division by zero is an error
inlined_jit = numba.njit(error_model="numpy", forceinline=True, **OPTIONS)      # small, or with an argument that takes longer to hand over
once_jit = numba.njit(nogil=True, error_model="numpy", inline="always")         # called in one place: not compiled alone too


@inlined_jit
def put(values, into):
    """into[...] = values, two arrays of one shape that do not overlap; AssertionError for other shapes.

    For numba's own assignment of an array every process compiles how to write an array's shape into a message: two or three seconds.
    """
    assert values.shape == into.shape
    for i in range(into.size):
        into.flat[i] = values.flat[i]
