// Python bindings: pol.execution._kernels.
//
// Each folder uses only those before it: arithmetic/ has primitives, functions and scalar programs; plan/ makes
// descriptors of nodes ready to run; nodes/ and contraction/ are the kernels, compiled once per instruction set;
// runtime/ runs nodes and steps.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <string>

#include "native/bindings.h"
#include "nodes/kernels.h"
#include "runtime/checksums.h"
#include "runtime/element.h"
#include "runtime/floating_point_mode.h"
#include "runtime/self_test.h"
#include "runtime/step.h"

namespace nb = nanobind;

namespace {

using pol::Bytes;
using pol::threads_or_all;

// The same memory as 32-bit words.
pol::Words words_of(const Bytes& bytes) {
    if (bytes.item_size() != sizeof(uint32_t)) throw nb::value_error("arrays of 32-bit words are needed");
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint32_t) != 0) throw nb::value_error("an array is not aligned");
    return {reinterpret_cast<uint32_t*>(bytes.data()), static_cast<int64_t>(bytes.size() / sizeof(uint32_t))};
}

// Arrays of words that stay in place while this lives.
class Arrays {
   public:
    explicit Arrays(nb::sequence objects, bool writable = false) {
        for (nb::handle object : objects) {
            bytes_.emplace_back(object, writable);
            words_.push_back(words_of(bytes_.back()));
        }
    }
    const std::vector<pol::Words>& words() const { return words_; }

   private:
    std::deque<Bytes> bytes_;
    std::vector<pol::Words> words_;
};

std::vector<std::string> strings(nb::sequence objects) {
    std::vector<std::string> out;
    for (nb::handle object : objects) {
        const Bytes bytes(object);
        out.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
}

void run_step(const pol::Step& step, uint32_t number, nb::sequence state, nb::sequence constants, nb::sequence outputs, size_t threads) {
    const Arrays state_words(state), constant_words(constants), output_words(outputs, true);
    nb::gil_scoped_release unlocked;
    step.run(number, state_words.words(), constant_words.words(), output_words.words(), threads_or_all(threads));
}

// A whole step, or a part of it.
using Advance = void (pol::Step::*)(uint32_t, const std::vector<pol::Words>&, const std::vector<pol::Words>&, const std::vector<pol::Words>&, size_t) const;

template <Advance advance>
void advance_step(const pol::Step& step, uint32_t number, nb::sequence state, nb::sequence constants, nb::sequence results, size_t threads) {
    const Arrays state_words(state), constant_words(constants), result_words(results, true);
    nb::gil_scoped_release unlocked;
    (step.*advance)(number, state_words.words(), constant_words.words(), result_words.words(), threads_or_all(threads));
}

// The tensors that the operands of a node read, in order, none of which an output may overlap.
class Sources {
   public:
    Sources(const pol::Descriptor& descriptor, nb::sequence operands, const pol::Words& out) : arrays_(operands) {
        const std::vector<pol::Words>& words = arrays_.words();
        if (words.size() != descriptor.operands.size()) throw nb::value_error("another number of operands is needed");
        for (size_t i = 0; i < words.size(); ++i) {
            if (words[i].size != descriptor.operands[i].numel) throw nb::value_error("an operand has another size than the node says");
            data_[i] = words[i].data;
        }
        pol::check_disjoint({out}, words);
    }
    const uint32_t* const* data() const { return data_; }

   private:
    const Arrays arrays_;
    const uint32_t* data_[pol::kMaxOperands];
};

// As `advance_step`; calls `seen(node, view)` with a read-only view of each output, which is valid in that call alone.
void watch_step(const pol::Step& step, uint32_t number, nb::sequence state, nb::sequence constants, nb::sequence results, nb::callable seen, size_t threads) {
    const Arrays state_words(state), constant_words(constants), result_words(results, true);
    nb::gil_scoped_release unlocked;
    step.advance(number, state_words.words(), constant_words.words(), result_words.words(), threads_or_all(threads), [&](size_t node, const pol::Words& output) {
        nb::gil_scoped_acquire locked;
        const nb::object view = nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(output.data), output.size * static_cast<Py_ssize_t>(sizeof(uint32_t)), PyBUF_READ));
        if (!view.is_valid()) throw nb::python_error();
        seen(node, view);
    });
}

// One node on its own; its operands are given in order, whatever tensors they read.
class Node {
   public:
    explicit Node(nb::handle descriptor) : Node(Bytes(descriptor)) {}
    int64_t numel() const { return descriptor_.numel; }
    std::vector<int64_t> operand_sizes() const {
        std::vector<int64_t> sizes;
        for (const pol::Operand& operand : descriptor_.operands) sizes.push_back(operand.numel);
        return sizes;
    }
    void run(uint32_t step, nb::handle out, nb::sequence operands, size_t threads) const {
        const Bytes out_bytes(out, true);
        const pol::Words out_words = words_of(out_bytes);
        if (out_words.size != descriptor_.numel) throw nb::value_error("the output has another size than the node");
        const Sources sources(descriptor_, operands, out_words);
        nb::gil_scoped_release unlocked;
        planned_.run(step, sources.data(), out_words.data, threads_or_all(threads));
    }

   private:
    explicit Node(const Bytes& bytes) : descriptor_(pol::Descriptor::parse(bytes.data(), bytes.size())), planned_(descriptor_) {}
    pol::Descriptor descriptor_;
    pol::PlannedNode planned_;
};

// One element of a node; operands as those of a node.
class Element {
   public:
    Element(nb::handle descriptor, int64_t number) : Element(Bytes(descriptor), number) {}
    void accumulators(uint32_t step, nb::sequence operands, int64_t begin, uint32_t accumulator, const std::vector<int64_t>& ends, nb::handle out) const {
        int64_t reached = begin;
        for (const int64_t end : ends) {
            if (end < reached || end > node_.terms) throw nb::value_error("terms must ascend from the first one and exist");
            reached = end;
        }
        if (begin < 0) throw nb::value_error("there is no term before the first one");
        const Bytes out_bytes(out, true);
        const pol::Words out_words = words_of(out_bytes);
        if (out_words.size != static_cast<int64_t>(ends.size())) throw nb::value_error("one word is needed for each of the terms");
        const Sources sources(node_, operands, out_words);
        nb::gil_scoped_release unlocked;
        element_.accumulators(step, sources.data(), begin, accumulator, ends, out_words.data);
    }
    void results(uint32_t step, nb::sequence operands, int64_t term, uint32_t accumulator, nb::handle out) const {
        if (term < 0 || term >= node_.terms) throw nb::value_error("the node has no such term");
        const Bytes out_bytes(out, true);
        const pol::Words out_words = words_of(out_bytes);
        if (out_words.size != static_cast<int64_t>(node_.body.instructions.size())) throw nb::value_error("one word is needed for each instruction");
        const Sources sources(node_, operands, out_words);
        nb::gil_scoped_release unlocked;
        element_.results(step, sources.data(), term, accumulator, out_words.data);
    }

   private:
    Element(const Bytes& bytes, int64_t number) : node_(pol::Descriptor::parse(bytes.data(), bytes.size())), element_(node_, checked(number)) {}
    int64_t checked(int64_t number) const {
        if (number < 0 || number >= node_.numel) throw nb::value_error("the node has no such element");
        return number;
    }
    pol::Descriptor node_;
    pol::Element element_;
};

// Writes the result of every instruction for `lanes` lanes: inputs are rows of one array, results rows of the other.
void program_values(nb::handle program, nb::handle inputs, nb::handle results, size_t lanes) {
    const Bytes program_bytes(program), input_bytes(inputs), result_bytes(results, true);
    pol::Reader reader(program_bytes.data(), program_bytes.size());
    const pol::ScalarProgram body = pol::ScalarProgram::read(reader);
    const pol::Words in = words_of(input_bytes), out = words_of(result_bytes);
    const auto rows = [&](size_t count) { return static_cast<int64_t>(count * lanes); };
    if (in.size != rows(body.inputs) || out.size != rows(body.instructions.size())) throw nb::value_error("an array has the wrong size");
    pol::check_disjoint({out}, {in});
    nb::gil_scoped_release unlocked;
    std::vector<std::vector<uint32_t>> constants;
    std::vector<uint32_t*> registers;
    for (int i = 0; i < body.inputs; ++i) registers.push_back(in.data + i * lanes);
    for (const uint32_t constant : body.constants) registers.push_back(constants.emplace_back(lanes, constant).data());
    for (size_t i = 0; i < body.instructions.size(); ++i) registers.push_back(out.data + i * lanes);
    const std::vector<pol::PlannedInstruction> instructions = pol::plan_program(body);
    const pol::FloatingPointMode mode;
    pol::kernels().program_values(instructions.data(), static_cast<int>(instructions.size()), registers.data(), lanes);
}

std::vector<uint64_t> checksums(nb::sequence arrays, size_t threads) {
    const Arrays words(arrays);
    nb::gil_scoped_release unlocked;
    return pol::checksums(words.words(), threads_or_all(threads));
}

nb::bytes self_test_words() {
    const std::vector<uint32_t> words = pol::self_test_words();
    return nb::bytes(words.data(), words.size() * sizeof(uint32_t));
}

}  // namespace

NB_MODULE(_kernels, m) {
    // A descriptor that breaks a rule of the specification; pol.execution turns it into a ProtocolError.
    nb::exception<pol::Malformed>(m, "MalformedError", PyExc_ValueError);
    pol::bind_isa(m);
    nb::class_<Node>(m, "Node")
        .def(nb::init<nb::handle>(), nb::arg("descriptor"))
        .def_prop_ro("numel", &Node::numel)
        .def_prop_ro("operand_sizes", &Node::operand_sizes)
        .def("run", &Node::run, nb::arg("step"), nb::arg("out"), nb::arg("operands"), nb::arg("threads") = 1);
    nb::class_<Element>(m, "Element")
        .def(nb::init<nb::handle, int64_t>(), nb::arg("descriptor"), nb::arg("number"))
        .def("accumulators", &Element::accumulators, nb::arg("step"), nb::arg("operands"), nb::arg("begin"), nb::arg("accumulator"), nb::arg("ends"), nb::arg("out"))
        .def("results", &Element::results, nb::arg("step"), nb::arg("operands"), nb::arg("term"), nb::arg("accumulator"), nb::arg("out"));
    nb::class_<pol::Step>(m, "Step")
        .def("__init__", [](pol::Step* self, nb::sequence descriptors, std::vector<int64_t> state_sizes, std::vector<int64_t> constant_sizes) {
            new (self) pol::Step(strings(descriptors), std::move(state_sizes), std::move(constant_sizes));
        }, nb::arg("descriptors"), nb::arg("state_sizes"), nb::arg("constant_sizes"))
        .def("keep", &pol::Step::keep, nb::arg("nodes"), nb::arg("all_nodes") = false, nb::arg("least_group_bytes") = pol::kLeastGroupBytes)
        .def_prop_ro("arena_words", &pol::Step::arena_words)
        .def("write_over", &pol::Step::write_over, nb::arg("slots"))
        .def("advance", &advance_step<static_cast<Advance>(&pol::Step::advance)>, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("results"), nb::arg("threads") = 1)
        .def("begin", &advance_step<&pol::Step::begin>, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("results"), nb::arg("threads") = 1)
        .def("finish", &advance_step<&pol::Step::finish>, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("results"), nb::arg("threads") = 1)
        .def("watch", &watch_step, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("results"), nb::arg("seen"), nb::arg("threads") = 1)
        .def("run", &run_step, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("outputs"), nb::arg("threads") = 1);
    m.def("program_values", &program_values, nb::arg("program"), nb::arg("inputs"), nb::arg("results"), nb::arg("lanes"));
    m.def("checksums", &checksums, nb::arg("arrays"), nb::arg("threads") = 1);
    m.def("self_test_words", &self_test_words);
}
