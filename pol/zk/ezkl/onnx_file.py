"""The ONNX file of a network, the input of EZKL."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from pol.zk.network import NetworkNode, NetworkOp, StepNetwork

OPERATOR_SET = 18
INTERMEDIATE_VERSION = 10

_SAME_NAME = {
    NetworkOp.ADD: "Add",
    NetworkOp.SUB: "Sub",
    NetworkOp.MUL: "Mul",
    NetworkOp.MATMUL: "MatMul",
    NetworkOp.RECIPROCAL: "Reciprocal",
    NetworkOp.SQRT: "Sqrt",
}


def onnx_file(network: StepNetwork) -> bytes:
    """The file's bytes, the same for equal networks and one version of onnx."""
    writer = _OnnxWriter(network)
    for number, node in enumerate(network.nodes):
        writer.write(number, node)
    inputs = [
        helper.make_tensor_value_info(_name(number), TensorProto.FLOAT, network.nodes[number].shape)
        for number in range(len(network.inputs))
    ]
    last = len(network.nodes) - 1
    outputs = [helper.make_tensor_value_info(_name(last), TensorProto.FLOAT, network.nodes[last].shape)]
    graph = helper.make_graph(writer.nodes, "step", inputs, outputs, writer.tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPERATOR_SET)], producer_name="pol")
    model.ir_version = INTERMEDIATE_VERSION
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


class _OnnxWriter:
    def __init__(self, network: StepNetwork) -> None:
        self.scale = network.scale
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def write(self, number: int, node: NetworkNode) -> None:
        name, operands = _name(number), [_name(operand) for operand in node.operands]
        if node.kind in _SAME_NAME:
            self._node(_SAME_NAME[node.kind], operands, name)
            return
        match node.kind:
            case NetworkOp.CONSTANT:
                numbers = np.array(node.values, dtype=np.float64) * 2.0**-self.scale
                self._tensor(numbers.astype(np.float32).reshape(node.shape), name)
            case NetworkOp.SHIFT:
                factor = self._tensor(np.full(1, 2.0**-node.bits, dtype=np.float32), f"{name}_factor")
                self._node("Mul", [operands[0], factor], name)
            case NetworkOp.GATE:
                zero = self._tensor(np.zeros(1, dtype=np.float32), f"{name}_zero")
                above = self._node("Greater", [operands[1], zero], f"{name}_above")
                mask = self._node("Cast", [above], f"{name}_mask", to=TensorProto.FLOAT)
                self._node("Mul", [operands[0], mask], name)
            case NetworkOp.SUM:
                self._node("ReduceSum", [operands[0], self._integers([node.axis], f"{name}_axes")], name, keepdims=1)
            case NetworkOp.RESHAPE:
                self._node("Reshape", [operands[0], self._integers(node.shape, f"{name}_shape")], name)
            case NetworkOp.TRANSPOSE:
                self._node("Transpose", operands, name, perm=[1, 0])
            case NetworkOp.SLICE:
                ends = [node.begin, node.begin + node.shape[-1], len(node.shape) - 1]
                what = [
                    self._integers([end], f"{name}_{part}")
                    for end, part in zip(ends, ("begin", "end", "axis"), strict=True)
                ]
                self._node("Slice", [operands[0], *what], name)
            case NetworkOp.CONCAT:
                self._node("Concat", operands, name, axis=len(node.shape) - 1)

    def _node(self, kind: str, operands: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, operands, [name], name=name, **attributes))
        return name

    def _integers(self, values: list[int] | tuple[int, ...], name: str) -> str:
        return self._tensor(np.array(values, dtype=np.int64), name)

    def _tensor(self, array: npt.NDArray[Any], name: str) -> str:
        self.tensors.append(numpy_helper.from_array(array, name))
        return name


def _name(number: int) -> str:
    return f"n{number}"
