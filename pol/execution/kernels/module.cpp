// Python bindings: pol.execution._kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <deque>
#include <string>

#include "floating_point_mode.h"
#include "isa.h"
#include "merkle.h"
#include "parallel.h"
#include "self_test.h"
#include "step.h"

namespace nb = nanobind;

namespace {

// A C-contiguous view of any object with the buffer protocol.
class Bytes {
   public:
    explicit Bytes(nb::handle object, bool writable = false) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) != 0) throw nb::python_error();
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }
    // The same memory as 32-bit words.
    pol::Words words() const {
        if (view_.itemsize != sizeof(uint32_t)) throw nb::value_error("arrays of 32-bit words are needed");
        if (reinterpret_cast<uintptr_t>(view_.buf) % alignof(uint32_t) != 0) throw nb::value_error("an array is not aligned");
        return {static_cast<uint32_t*>(view_.buf), static_cast<int64_t>(size() / sizeof(uint32_t))};
    }

   private:
    Py_buffer view_;
};

nb::bytes to_bytes(const std::vector<uint8_t>& data) { return nb::bytes(data.data(), data.size()); }

size_t hash_count(const Bytes& hashes) {
    if (hashes.size() % pol::kHashSize != 0) throw nb::value_error("hashes are 32 bytes each");
    return hashes.size() / pol::kHashSize;
}

size_t threads_or_all(size_t threads) { return threads == 0 ? pol::hardware_threads() : threads; }

nb::bytes keccak256(nb::handle message) {
    const Bytes bytes(message);
    uint8_t hash[pol::kHashSize];
    pol::isa().keccak256(bytes.data(), bytes.size(), hash);
    return nb::bytes(hash, sizeof hash);
}

nb::bytes hash_leaves(nb::handle data, size_t threads) {
    const Bytes bytes(data);
    if (bytes.size() == 0) throw nb::value_error("data to be hashed has at least one byte");
    std::vector<uint8_t> hashes;
    {
        nb::gil_scoped_release unlocked;
        hashes = pol::hash_data_leaves(bytes.data(), bytes.size(), threads_or_all(threads));
    }
    return to_bytes(hashes);
}

nb::bytes data_tree(nb::handle data, size_t threads) {
    const Bytes bytes(data);
    if (bytes.size() == 0) throw nb::value_error("data to be hashed has at least one byte");
    uint8_t root[pol::kHashSize];
    {
        nb::gil_scoped_release unlocked;
        pol::data_tree(bytes.data(), bytes.size(), threads_or_all(threads), root);
    }
    return nb::bytes(root, sizeof root);
}

nb::bytes tree(nb::handle leaves) {
    const Bytes bytes(leaves);
    const size_t count = hash_count(bytes);
    uint8_t root[pol::kHashSize];
    {
        nb::gil_scoped_release unlocked;
        pol::tree(bytes.data(), count, root);
    }
    return nb::bytes(root, sizeof root);
}

nb::list levels(nb::handle leaves) {
    const Bytes bytes(leaves);
    const size_t count = hash_count(bytes);
    std::vector<std::vector<uint8_t>> hashes;
    {
        nb::gil_scoped_release unlocked;
        hashes = pol::tree_levels(bytes.data(), count);
    }
    nb::list out;
    for (const auto& level : hashes) out.append(to_bytes(level));
    return out;
}

// Arrays of words that stay in place while this lives.
class Arrays {
   public:
    explicit Arrays(nb::sequence objects, bool writable = false) {
        for (nb::handle object : objects) {
            bytes_.emplace_back(object, writable);
            words_.push_back(bytes_.back().words());
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

void advance_step(const pol::Step& step, uint32_t number, nb::sequence state, nb::sequence constants, nb::sequence results, size_t threads) {
    const Arrays state_words(state), constant_words(constants), result_words(results, true);
    nb::gil_scoped_release unlocked;
    step.advance(number, state_words.words(), constant_words.words(), result_words.words(), threads_or_all(threads));
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
        const pol::Words out_words = out_bytes.words();
        const Arrays arrays(operands);
        const std::vector<pol::Words>& words = arrays.words();
        if (out_words.size != descriptor_.numel) throw nb::value_error("the output has another size than the node");
        if (words.size() != descriptor_.operands.size()) throw nb::value_error("another number of operands is needed");
        const uint32_t* sources[pol::kMaxOperands];
        for (size_t i = 0; i < words.size(); ++i) {
            if (words[i].size != descriptor_.operands[i].numel) throw nb::value_error("an operand has another size than the node says");
            sources[i] = words[i].data;
        }
        pol::check_disjoint({out_words}, words);
        nb::gil_scoped_release unlocked;
        planned_.run(step, sources, out_words.data, threads_or_all(threads));
    }

   private:
    explicit Node(const Bytes& bytes) : descriptor_(pol::Descriptor::parse(bytes.data(), bytes.size())), planned_(descriptor_) {}
    pol::Descriptor descriptor_;
    pol::PlannedNode planned_;
};

// Writes the result of every instruction for `lanes` lanes: inputs are rows of one array, results rows of the other.
void program_values(nb::handle program, nb::handle inputs, nb::handle results, size_t lanes) {
    const Bytes program_bytes(program), input_bytes(inputs), result_bytes(results, true);
    pol::Reader reader(program_bytes.data(), program_bytes.size());
    const pol::ScalarProgram body = pol::ScalarProgram::read(reader);
    const pol::Words in = input_bytes.words(), out = result_bytes.words();
    const auto rows = [&](size_t count) { return static_cast<int64_t>(count * lanes); };
    if (in.size != rows(body.inputs) || out.size != rows(body.instructions.size())) throw nb::value_error("an array has the wrong size");
    pol::check_disjoint({out}, {in});
    nb::gil_scoped_release unlocked;
    std::vector<std::vector<uint32_t>> constants;
    std::vector<uint32_t*> registers;
    for (int i = 0; i < body.inputs; ++i) registers.push_back(in.data + i * lanes);
    for (const uint32_t constant : body.constants) registers.push_back(constants.emplace_back(lanes, constant).data());
    std::vector<pol::PlannedInstruction> instructions;
    for (const pol::Instruction& step : body.instructions) {
        const auto result = static_cast<uint16_t>(registers.size());
        const int operands = pol::arity(step.op);
        instructions.push_back({step.op, result, step.a, operands > 1 ? step.b : step.a, operands > 2 ? step.c : step.a, step.a, step.a});
        registers.push_back(out.data + instructions.size() * lanes - lanes);
    }
    const pol::FloatingPointMode mode;
    pol::isa().program_values(instructions.data(), static_cast<int>(instructions.size()), registers.data(), lanes);
}

nb::bytes self_test() {
    uint8_t digest[pol::kHashSize];
    pol::self_test(digest);
    return nb::bytes(digest, sizeof digest);
}

nb::list isas() {
    nb::list out;
    for (size_t i = 0; pol::available_isa(i) != nullptr; ++i) out.append(pol::available_isa(i)->name);
    return out;
}

void set_isa(const std::string& name) {
    if (!pol::set_isa(name.c_str())) throw nb::value_error(("this machine or build has no instruction set named " + name).c_str());
}

}  // namespace

NB_MODULE(_kernels, m) {
    // A descriptor that breaks a rule of the specification; pol.execution turns it into a ProtocolError.
    nb::exception<pol::Malformed>(m, "MalformedError", PyExc_ValueError);
    if (const char* wanted = std::getenv("POL_ISA"); wanted != nullptr && *wanted != '\0') {
        if (!pol::set_isa(wanted)) throw nb::import_error("POL_ISA names an instruction set that this machine or build lacks");
    }
    m.def("keccak256", &keccak256, nb::arg("message"));
    m.def("hash_leaves", &hash_leaves, nb::arg("data"), nb::arg("threads") = 0);
    m.def("data_tree", &data_tree, nb::arg("data"), nb::arg("threads") = 0);
    m.def("tree", &tree, nb::arg("leaves"));
    m.def("levels", &levels, nb::arg("leaves"));
    nb::class_<Node>(m, "Node")
        .def(nb::init<nb::handle>(), nb::arg("descriptor"))
        .def_prop_ro("numel", &Node::numel)
        .def_prop_ro("operand_sizes", &Node::operand_sizes)
        .def("run", &Node::run, nb::arg("step"), nb::arg("out"), nb::arg("operands"), nb::arg("threads") = 1);
    nb::class_<pol::Step>(m, "Step")
        .def("__init__", [](pol::Step* self, nb::sequence descriptors, std::vector<int64_t> state_sizes, std::vector<int64_t> constant_sizes) {
            new (self) pol::Step(strings(descriptors), std::move(state_sizes), std::move(constant_sizes));
        }, nb::arg("descriptors"), nb::arg("state_sizes"), nb::arg("constant_sizes"))
        .def("keep", &pol::Step::keep, nb::arg("nodes"))
        .def_prop_ro("arena_words", &pol::Step::arena_words)
        .def("advance", &advance_step, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("results"), nb::arg("threads") = 1)
        .def("run", &run_step, nb::arg("step"), nb::arg("state"), nb::arg("constants"), nb::arg("outputs"), nb::arg("threads") = 1);
    m.def("program_values", &program_values, nb::arg("program"), nb::arg("inputs"), nb::arg("results"), nb::arg("lanes"));
    m.def("self_test", &self_test);
    m.def("isa", [] { return std::string(pol::isa().name); });
    m.def("isas", &isas);
    m.def("set_isa", &set_isa, nb::arg("name"));
}
