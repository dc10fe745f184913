// Python bindings: pol.commitments._hashing.
#include <vector>

#include "hashing.h"
#include "merkle.h"
#include "native/bindings.h"

namespace nb = nanobind;

namespace {

using pol::Bytes;

nb::bytes to_bytes(const std::vector<uint8_t>& data) { return nb::bytes(data.data(), data.size()); }

size_t hash_count(const Bytes& hashes) {
    if (hashes.size() % pol::kHashSize != 0) throw nb::value_error("hashes are 32 bytes each");
    return hashes.size() / pol::kHashSize;
}

nb::bytes keccak256(nb::handle message) {
    const Bytes bytes(message);
    uint8_t hash[pol::kHashSize];
    pol::hashing().keccak256(bytes.data(), bytes.size(), hash);
    return nb::bytes(hash, sizeof hash);
}

nb::bytes hash_leaves(nb::handle data, size_t threads) {
    const Bytes bytes(data);
    if (bytes.size() == 0) throw nb::value_error("data to be hashed has at least one byte");
    std::vector<uint8_t> hashes;
    {
        nb::gil_scoped_release unlocked;
        hashes = pol::hash_data_leaves(bytes.data(), bytes.size(), pol::threads_or_all(threads));
    }
    return to_bytes(hashes);
}

nb::bytes data_tree(nb::handle data, size_t threads) {
    const Bytes bytes(data);
    if (bytes.size() == 0) throw nb::value_error("data to be hashed has at least one byte");
    uint8_t root[pol::kHashSize];
    {
        nb::gil_scoped_release unlocked;
        pol::data_tree(bytes.data(), bytes.size(), pol::threads_or_all(threads), root);
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

}  // namespace

NB_MODULE(_hashing, m) {
    pol::bind_isa(m);
    m.def("keccak256", &keccak256, nb::arg("message"));
    m.def("hash_leaves", &hash_leaves, nb::arg("data"), nb::arg("threads") = 0);
    m.def("data_tree", &data_tree, nb::arg("data"), nb::arg("threads") = 0);
    m.def("tree", &tree, nb::arg("leaves"));
    m.def("levels", &levels, nb::arg("leaves"));
}
