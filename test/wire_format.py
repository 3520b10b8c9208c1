"""Protobuf's wire format, read and written: what tests know of files without their schemas. Needs Python's own library alone.

    for number, kind, value, raw in fields(data): ...      # of a message; what is not understood goes on as `raw`
    field(1, 7) + field(2, "text") + field(3, message)     # -> bytes
"""
import collections

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Its number in the schema, one of the kinds above, a number (of VARINT) or bytes, and all of its bytes with the tag.
Field = collections.namedtuple("Field", "number kind value raw")


def varint(number):
    number &= (1 << 64) - 1  # negative numbers are two's complement
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def tag(number, kind):
    return varint(number << 3 | kind)


def field(number, value):
    """A varint, or text, bytes or a message with its length."""
    if isinstance(value, int):
        return tag(number, VARINT) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return tag(number, BYTES) + varint(len(value)) + value


def read_varint(data, at):
    """The number, and where it ends."""
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message in their order; ValueError where it is none."""
    at = 0
    while at < len(data):
        begin = at
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
        else:
            if kind == BYTES:
                length, at = read_varint(data, at)
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
            else:
                raise ValueError(f"byte {begin} of {len(data)}: no field begins with {key}")
            value, at = data[at:at + length], at + length
            if at > len(data):
                raise ValueError(f"the field at byte {begin} ends at byte {at} of {len(data)}")
        yield Field(key >> 3, kind, value, data[begin:at])
