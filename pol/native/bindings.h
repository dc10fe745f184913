// What the bindings of the extension modules share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <string>

#include "native/isa.h"
#include "native/threads.h"

namespace pol {

// A C-contiguous view of any object with the buffer protocol.
class Bytes {
   public:
    explicit Bytes(nanobind::handle object, bool writable = false) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) != 0) throw nanobind::python_error();
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    uint8_t* data() const { return static_cast<uint8_t*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }
    size_t item_size() const { return static_cast<size_t>(view_.itemsize); }

   private:
    Py_buffer view_;
};

// 0 threads in Python: as many as the machine has.
inline size_t threads_or_all(size_t threads) { return threads == 0 ? hardware_threads() : threads; }

// Functions that tell and choose the module's instruction set; the environment variable POL_ISA chooses it at import.
inline void bind_isa(nanobind::module_& m) {
    namespace nb = nanobind;
    if (const char* wanted = std::getenv("POL_ISA"); wanted != nullptr && *wanted != '\0' && !set_isa(wanted))
        throw nb::import_error("POL_ISA names an instruction set that this machine or build lacks");
    m.def("isa", [] { return std::string(name_of(isa())); });
    m.def("isas", [] {
        nb::list names;
        for (const Isa set : isas()) names.append(name_of(set));
        return names;
    });
    m.def("set_isa", [](const std::string& name) {
        if (!set_isa(name)) throw nb::value_error(("this machine or build has no instruction set named " + name).c_str());
    }, nb::arg("name"));
}

}  // namespace pol
