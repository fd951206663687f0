"""Asking a processor for memory before it is needed.

What an item brings lies anywhere in arrays that no cache holds where items are very many, and each line of 64 bytes that has
to be waited for takes as long as hundreds of additions.  But a user's items are known ahead: a kernel that asks for the next
one's lines while it works on this one's finds them there.  Asking changes no number: it is an instruction without a result
(LLVM's `llvm.prefetch`), and where kernels run as plain Python it is nothing at all.
"""
from llvmlite import ir
import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

LINE = 64               # bytes that come at once


def _ask(context, record, name, first, last):
    """Ask for the elements first:last of the C-contiguous array `name` of a NamedTuple, counted flat; nothing where first >= last.

    From a kernel: `ask(grouped, "size", 8, 16)`.  It reads no more of the tuple than where the array lies, because to take
    an array out of a tuple counts a reference, which takes longer than to ask.  A wrong bound does no harm.
    """
    fields = getattr(record, "fields", ())
    if not isinstance(name, types.StringLiteral) or name.literal_value not in fields:
        return None
    at = fields.index(name.literal_value)
    array = record.types[at]
    if not (isinstance(array, types.Array) and array.layout == "C" and isinstance(first, types.Integer)
            and isinstance(last, types.Integer)):
        return None

    def generate(context, builder, signature, args):
        size, byte = context.get_abi_sizeof(context.get_data_type(array.dtype)), ir.IntType(8)
        data = context.make_array(array)(context, builder, builder.extract_value(args[0], at)).data
        first, last = (context.cast(builder, end, kind, types.intp) for end, kind in zip(args[2:], signature.args[2:]))
        start, count = (builder.mul(number, number.type(size)) for number in (first, builder.sub(last, first)))
        with cgutils.for_range_slice(builder, count.type(0), count, count.type(LINE)) as (offset, _):
            place = builder.gep(builder.bitcast(data, byte.as_pointer()), [builder.add(start, offset)], source_etype=byte)
            _line(builder, place)
        return context.get_dummy_value()

    return types.void(record, name, first, last), generate


def _line(builder, place):
    """The instruction that asks for one line, to be read and kept near."""
    word = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0"), [place, word(0), word(3), word(1)])


def _nothing(record, name, first, last):
    """What kernels that run as plain Python call instead."""


ask = _nothing if numba.config.DISABLE_JIT else intrinsic(prefer_literal=True)(_ask)
