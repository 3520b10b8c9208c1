"""Writes ONNX models in protobuf's wire format, since tests have numpy and no onnx package. Field numbers are those of onnx.proto.

    model([node("Relu", ["x"], ["y"])], inputs=[("x", "f32", [2, "batch"])], outputs=[("y", "f32", [2, "batch"])]) -> bytes
"""
import numpy

from wire_format import FIXED32, field, tag

ELEMENT_TYPES = {  # TensorProto.DataType; by our own short name
    "f32": (1, numpy.float32), "u8": (2, numpy.uint8), "i8": (3, numpy.int8), "i32": (6, numpy.int32), "i64": (7, numpy.int64),
    "bool": (9, numpy.bool_), "f16": (10, numpy.float16), "f64": (11, numpy.float64), "u16": (4, numpy.uint16), "i16": (5, numpy.int16),
    "u32": (12, numpy.uint32), "u64": (13, numpy.uint64), "bf16": (16, "V2"),  # numpy has no bf16: its bytes
}
NAMES = {numpy.dtype(kind): name for name, (_, kind) in ELEMENT_TYPES.items()}


def tensor(name, array):
    """A TensorProto of an array; raw data, so any of ELEMENT_TYPES."""
    array = numpy.asarray(array)
    number = ELEMENT_TYPES[NAMES[array.dtype]][0]
    return b"".join(field(1, size) for size in array.shape) + field(2, number) + field(8, name) + field(9, array.tobytes())


def attribute(name, value):
    """An AttributeProto: int, float, text, array, bytes of a graph, or a list of ints or floats."""
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return field(1, name) + field(6, value) + field(20, 5)
    if isinstance(value, float):
        return field(1, name) + tag(2, FIXED32) + numpy.float32(value).tobytes() + field(20, 1)
    if isinstance(value, (int, numpy.integer)):
        return field(1, name) + field(3, int(value)) + field(20, 2)
    if isinstance(value, numpy.ndarray):
        return field(1, name) + field(5, tensor("", value)) + field(20, 4)
    if value and all(isinstance(item, float) for item in value):
        return field(1, name) + b"".join(tag(7, FIXED32) + numpy.float32(item).tobytes() for item in value) + field(20, 6)
    return field(1, name) + b"".join(field(8, int(item)) for item in value) + field(20, 7)


def node(op, inputs, outputs, name=None, domain="", torch_call=None, **attributes):
    """A NodeProto; without a name it is called as its first output. `torch_call`: what PyTorch's exporter says it is from,
    "aten.detach.default](args = (%x,), kwargs = {})"."""
    said = field(9, field(1, "pkg.torch.onnx.fx_node") + field(2, f"%y : [num_users=1] = call_function[target=torch.ops.{torch_call}")) if torch_call else b""
    return (b"".join(field(1, each) for each in inputs) + b"".join(field(2, each) for each in outputs) + field(3, name or outputs[0]) + field(4, op)
            + (field(7, domain) if domain else b"") + b"".join(field(5, attribute(key, value)) for key, value in attributes.items()) + said)


def value_info(name, kind, shape):
    """A ValueInfoProto; a dim is a size or a name."""
    dims = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, int(size))) for size in shape)
    return field(1, name) + field(2, field(1, field(1, ELEMENT_TYPES[kind][0]) + field(2, dims)))


def kind_info(name, kind):
    """The ValueInfoProto by which PyTorch's exporter says what an initializer was: "PARAMETER" or "BUFFER"."""
    return field(1, name) + field(4, field(1, "pkg.torch.export.graph_signature.InputSpec.kind") + field(2, kind))


def graph(nodes, inputs, outputs, initializers=(), kinds=()):
    """A GraphProto, as `model` says, which is also what a node's attribute may hold."""
    return b"".join([*(field(1, each) for each in nodes), field(2, "test"), *(field(5, tensor(*each)) for each in initializers),
                     *(field(11, value_info(*each)) for each in inputs), *(field(12, value_info(*each)) for each in outputs),
                     *(field(13, kind_info(*each)) for each in kinds)])


def function(name, inputs, outputs, nodes, domain, opset=18):
    """A FunctionProto: a node of that name and domain stands for the nodes; inputs and outputs are names."""
    versions = [field(9, field(1, each) + field(2, version)) for each, version in (("", opset), (domain, 1))]
    return (field(1, name) + b"".join([*(field(4, each) for each in inputs), *(field(5, each) for each in outputs), *(field(7, each) for each in nodes), *versions])
            + field(10, domain))


def model(nodes, inputs, outputs, initializers=(), opset=18, ir=8, domains=(), kinds=(), functions=()):
    """A ModelProto. Inputs and outputs are (name, element type, shape), initializers (name, array), `kinds` what of them were parameters or
    buffers, as (name, kind); other domains are imported in version 1."""
    versions = [field(8, field(1, domain) + field(2, version)) for domain, version in [("", opset), *((each, 1) for each in domains)]]
    return field(1, ir) + field(7, graph(nodes, inputs, outputs, initializers, kinds)) + b"".join(versions) + b"".join(field(25, each) for each in functions)
