// Python bindings: pol.commitments._hashing.
#include <algorithm>
#include <cstring>
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

// keccak-256 of a message that comes piece by piece.
class Keccak256 {
   public:
    void update(nb::handle piece) {
        const Bytes bytes(piece);
        const uint8_t* data = bytes.data();
        size_t size = bytes.size();
        if (filled_ != 0) {
            const size_t taken = std::min(size, pol::kRate - filled_);
            if (taken != 0) std::memcpy(block_ + filled_, data, taken);
            data += taken, size -= taken, filled_ += taken;
            if (filled_ < pol::kRate) return;
            pol::hashing().absorb(state_, block_, 1);
        }
        pol::hashing().absorb(state_, data, size / pol::kRate);
        filled_ = size % pol::kRate;
        if (filled_ != 0) std::memcpy(block_, data + size - filled_, filled_);
    }

    nb::bytes digest() const {
        uint64_t state[25];
        uint8_t last[pol::kRate] = {};
        std::memcpy(state, state_, sizeof state);
        std::memcpy(last, block_, filled_);
        last[filled_] = 0x01;
        last[pol::kRate - 1] |= 0x80;
        pol::hashing().absorb(state, last, 1);
        return nb::bytes(reinterpret_cast<const char*>(state), pol::kHashSize);
    }

   private:
    uint64_t state_[25] = {};
    uint8_t block_[pol::kRate] = {};
    size_t filled_ = 0;
};

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
    nb::class_<Keccak256>(m, "Keccak256")
        .def(nb::init<>())
        .def("update", &Keccak256::update, nb::arg("piece"))
        .def("digest", &Keccak256::digest);
    m.def("hash_leaves", &hash_leaves, nb::arg("data"), nb::arg("threads") = 0);
    m.def("data_tree", &data_tree, nb::arg("data"), nb::arg("threads") = 0);
    m.def("tree", &tree, nb::arg("leaves"));
    m.def("levels", &levels, nb::arg("leaves"));
}
