// One element of a node in detail: the accumulators of its fold, and the results of all instructions of one term.
#pragma once
#include <vector>

#include "plan/plan.h"

namespace pol {

class Element {
   public:
    Element(const Descriptor& node, int64_t element) : terms_(node.terms_of(element)), planned_(terms_), body_(plan_program(node.body)) {}
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;
    // The accumulator before each of the terms `ends`, ascending from `begin` or later, given that before `begin`. Only
    // blocks of terms are held in memory. The caller guarantees sizes and numbers.
    void accumulators(uint32_t step, const uint32_t* const* sources, int64_t begin, uint32_t accumulator, const std::vector<int64_t>& ends, uint32_t* out) const;
    // The results of all instructions at one term, given the accumulator before it.
    void results(uint32_t step, const uint32_t* const* sources, int64_t term, uint32_t accumulator, uint32_t* out) const;

   private:
    uint32_t coordinate(int index, uint32_t step, int64_t term) const;
    Descriptor terms_;
    PlannedNode planned_;
    std::vector<PlannedInstruction> body_;
};

}  // namespace pol
