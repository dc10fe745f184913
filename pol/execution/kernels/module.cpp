// Python bindings: pol.execution._kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <string>

#include "isa.h"
#include "merkle.h"
#include "parallel.h"

namespace nb = nanobind;

namespace {

// A C-contiguous view of any object with the buffer protocol.
class Bytes {
   public:
    explicit Bytes(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

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
    if (const char* wanted = std::getenv("POL_ISA"); wanted != nullptr && *wanted != '\0') {
        if (!pol::set_isa(wanted)) throw nb::import_error("POL_ISA names an instruction set that this machine or build lacks");
    }
    m.def("keccak256", &keccak256, nb::arg("message"));
    m.def("hash_leaves", &hash_leaves, nb::arg("data"), nb::arg("threads") = 0);
    m.def("data_tree", &data_tree, nb::arg("data"), nb::arg("threads") = 0);
    m.def("tree", &tree, nb::arg("leaves"));
    m.def("levels", &levels, nb::arg("leaves"));
    m.def("isa", [] { return std::string(pol::isa().name); });
    m.def("isas", &isas);
    m.def("set_isa", &set_isa, nb::arg("name"));
}
