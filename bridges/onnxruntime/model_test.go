package onnxruntime

import "google.golang.org/protobuf/encoding/protowire"

// product is an ONNX model, y = x·w: what onnx.helper would write.
func product() []byte {
	const (
		irVersion, opset = 8, 13
		float            = 1
	)
	matrix := func(name, rows, cols string) []byte {
		dim := func(param string) []byte { return text(2, param) }
		shape := append(message(1, dim(rows)), message(1, dim(cols))...)
		tensor := append(number(1, float), message(2, shape)...)
		return append(text(1, name), message(2, message(1, tensor))...)
	}
	node := append(text(1, "x"), text(1, "w")...)
	node = append(node, append(text(2, "y"), text(4, "MatMul")...)...)
	graph := append(message(1, node), text(2, "product")...)
	graph = append(graph, message(11, matrix("x", "n", "k"))...)
	graph = append(graph, message(11, matrix("w", "k", "m"))...)
	graph = append(graph, message(12, matrix("y", "n", "m"))...)
	model := append(number(1, irVersion), message(7, graph)...)
	return append(model, message(8, append(text(1, ""), number(2, opset)...))...)
}

func number(field protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), x)
}

func text(field protowire.Number, s string) []byte { return message(field, []byte(s)) }

func message(field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), b)
}
