// The only file that sees the ONNX protobuf.
