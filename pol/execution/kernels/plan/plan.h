// The plan of a node. It is plain data: files compiled once per instruction set must not use library code
// (native/isa.h).
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "arithmetic/functions.h"
#include "plan/descriptor.h"

namespace pol {

constexpr int kMaxLanes = 512;

// An affine form over the merged dimensions; its base stands apart (Run::bases) because it depends on the step.
struct Form {
    int64_t out[kMaxRank];
    int64_t fold[kMaxFoldRank];
};

// Output dimensions, in row-major order, that the lanes of a block run over.
struct Space {
    int rank;
    int64_t size;
    int64_t dims[kMaxRank];
    int axis[kMaxRank];
};

static inline Space empty_space() {
    Space space{};
    space.size = 1;
    return space;
}

// One position, at coordinate 0 of the first dimension.
static inline Space unit_space() {
    Space space = empty_space();
    space.rank = space.dims[0] = 1;
    return space;
}

static inline void add_axis(Space& space, const Space& all, int axis) {
    space.dims[space.rank] = all.dims[axis];
    space.axis[space.rank++] = axis;
    space.size *= all.dims[axis];
}

struct PlannedOperand {
    int address;      // index of its form; the forms of its bounds follow it
    int bounds;       // how many
    int64_t limits[kMaxBounds];
    int64_t numel;
    uint32_t fill;
    int gather;       // operand, or -1
    int64_t gather_stride;
    int64_t gather_limit;
    bool varies;      // with the fold index
    unsigned axes;    // bit d: varies with merged output dimension d
};

struct PlannedCoordinate {
    int form;
    bool varies;
};

// Registers of a plan: operands, coordinates, accumulator, constants, results. Each has a buffer of one block, but for
// the accumulator and the last result, which live in the output. Operands that a primitive does not use repeat `a`.
struct PlannedInstruction {
    uint8_t op;  // a primitive, perhaps | kLazy; or a function (arithmetic/functions.h)
    uint16_t result, a, b, c;
    uint16_t d, e;  // functions only
};
constexpr int kOutputBuffer = -1;
constexpr int kMaxPlanRegisters = kMaxOperands + kMaxCoordinates + 1 + kMaxRegisters;

// The greater and the lesser of two integers: LTS and SELECT, as one join.
constexpr uint8_t kGreatest = 0x3e, kLeast = 0x3f;

// How the body of a fold ends: acc = join(acc, x), or FFMA(x, y, acc).
struct FoldJoin {
    uint8_t op;        // FADD, FMUL, FMIN, FMAX, FFMA, ADD, MUL, AND, OR, kGreatest or kLeast
    int x, y;          // registers; y is x but for FFMA
    int instructions;  // that join; 0: the body ends in another way
    // Whether it joins numbers, of which no NaN but the canonical one is left.
    bool of_numbers() const { return op <= FMAX; }
};

// Which kernel runs a node; Isa has one row of its table for each.
enum Kind { kElements, kContraction, kRowFold, kScatter, kRanks, kScan, kKinds };

constexpr int kMaxScatterKeys = 4;

// A fold that joins each term to the one element that words of the term, its keys, name: out[key] = join(out[key], term).
struct ScatterPlan {
    int keys;
    int key[kMaxScatterKeys];    // operands
    int form[kMaxScatterKeys];   // of the coordinates that they equal
    int axis[kMaxScatterKeys];   // merged output dimensions that these are; none of them twice
    uint8_t join;                // FADD, ADD, FFMA, or MOV, which keeps the last term
    int term;                    // register: an operand, a coordinate or a constant
    int factor;                  // of FFMA(term, factor, out[key]): such a register too; else the term
    int before;                  // operand: what the element is before the first term; -1: init
};

// A contraction with bounds, as in a convolution: x varies along rows, y along lanes, both may vary along positions,
// and no bound depends on rows or lanes.
struct TapPlan {
    int x, y;
    Space batch, rows, positions, lanes;  // lanes: one dimension
    int chunked;      // fold dimension that is cut into blocks; those within are run whole
    int64_t chunk;    // its values per block
    int64_t inner;    // terms per value
};

// acc = FFMA(x, y, acc), or the same of integers, with x and y varying along different output dimensions: a matrix product in disguise.
struct ContractionPlan {
    int x, y;         // operands; y varies along the innermost dimension
    Space batch, rows, columns;
    bool integers;    // acc = ADD(acc, MUL(x, y)) instead
    // For reads with bounds: the same output cut in another way, so that bounds depend on positions and terms only.
    bool has_taps;
    TapPlan taps;
};

// A fold along contiguous words of its operands, acc = join(acc, term): rows of terms, each for one element, or for
// `width` elements in turn (lanes, which are then the first output dimension).
struct RowPlan {
    bool lanes;
    int width;
    int64_t length;   // words of a row
    int x, y;         // registers: of the join
    bool programmed;  // the term is computed, not just read
    // A term that nodes/rows.cpp computes in registers: FFMA(x, y - mean), x being an operand, a product or y - mean
    // itself.
    bool centered;
    int factor, scale, value, mean;  // operands; no factor or scale: -1
    int exponent, shift;             // operands, if the term is exp(exponent - shift); else -1
};

// The join of a fold with x, FFMA(x, y, acc) or FFMA(x, (value - mean) * scale, acc), where x and value lie side by side for
// neighboring elements, and mean and scale are the same.
struct ColumnPlan {
    bool found;
    int x, y, value, mean, scale;  // operands; -1: there is none
};

// A fold whose element i along a dimension joins the terms 0 .. i of one line of words: running sums. The terms after
// these read a fill that joins without effect.
struct ScanPlan {
    int axis;   // the output dimension
    int bound;  // form: 0 <= i - k
};

// What the body of a map ends in: an expression of operands and computed registers, its leaves.
enum class Ending { none, normalized, weighted_gradient, norm_gradient, scaled_difference, two_differences, difference_of_product, quotient, where_equal, exponential, less_exponential };
constexpr int kMostLeaves = 7;

// A fold that counts, for every word of a line, the words that come before it in order: its place if the line were
// sorted, equal words by their places.
struct RankPlan {
    int own, other;    // operands
    int axis;          // the output dimension that lines run along
    bool numbers;      // or integers
    bool descending;
};

struct Plan {
    Kind kind;
    ContractionPlan contraction;  // meaningful for that kind only, and so are the next ones
    RowPlan row;
    ScatterPlan scatter;
    RankPlan ranks;
    ScanPlan scan;
    Space space;      // all output dimensions
    int fold_rank;
    int64_t fold[kMaxFoldRank];
    int64_t terms;
    bool folds;
    FoldJoin join;
    uint32_t init;
    int forms;
    const Form* form;
    int operands;
    const PlannedOperand* operand;
    int coordinates;
    const PlannedCoordinate* coordinate;
    int constants;
    const uint32_t* constant;
    int accumulator;  // register; constants follow it
    int registers;
    const int* buffer;        // of every register
    int buffers;
    int once_count;           // instructions that no fold index changes: run once per block
    const PlannedInstruction* once;
    int each_count;           // run for every term; the last of them gives the result
    const PlannedInstruction* each;
    int lanes;                // per block
    int tile_axis;            // of a map: the dimension along which an operand is contiguous that is not along the innermost; or -1
    // The output dimensions as the lanes of maps/elements.cpp run over them. If it turns, the innermost dimension, being
    // short, changes places with the next one.
    Space turned;
    bool turns;
    ColumnPlan columns;
    Ending ending;
    int leaves, leaf[kMostLeaves];
    int before_count;
    const PlannedInstruction* before;  // the instructions that the leaves need
    bool joins;               // a map that is the OR of reads that are 0 out of range, as tensors put side by side are
    // A fold whose term leaves the accumulator as it is unless an operand's word (the key) equals a coordinate, as in
    // the gradient of a table lookup: only the terms with that key are run.
    bool keyed;
    int key;                  // operand; it varies with the fold index only
    int key_form;             // of the coordinate
    int key_axis;             // merged output dimension that the coordinate is
};

// One execution of a plan.
struct Run {
    const int64_t* bases;          // per form, at this step
    const bool* safe;              // per operand: no read and no bound can be out of range
    const uint32_t* const* sources;  // per operand
    uint32_t* out;
    int64_t keys;                  // keyed plans: the fold indices ordered by key, and within a key ascending
    const uint32_t* key;
    const uint32_t* term;
};

// What a run needs at a step on which forms depend.
struct StepForms {
    int64_t bases[kMaxForms];
    bool safe[kMaxOperands];
};

// Owns what a Plan points to.
class PlannedNode {
   public:
    explicit PlannedNode(const Descriptor& descriptor);
    PlannedNode(const PlannedNode&) = delete;
    PlannedNode& operator=(const PlannedNode&) = delete;
    // Computes the output. The caller guarantees sizes; `step` < 2^32. The result does not depend on `threads`.
    void run(uint32_t step, const uint32_t* const* sources, uint32_t* out, size_t threads) const;
    const Plan& plan() const { return plan_; }
    // A run at a step without keys; it may point to `own`.
    Run at(uint32_t step, const uint32_t* const* sources, uint32_t* out, StepForms& own) const;
    // The same for elements whose coordinates begin at `origin`, which has one for the step too; the addresses of the
    // operands in the mask `fixed` do not move with it.
    Run at(uint32_t step, const int64_t* origin, unsigned fixed, const uint32_t* const* sources, uint32_t* out, StepForms& own) const;
    // For nodes that are run without keys.
    void forget_key() { plan_.keyed = false; }
    // Computes a run without keys on this thread.
    void compute(const Run& run) const;
    // Word operations, about.
    double work() const;
    // Whether the output may be written over this operand: every element reads only the word that it replaces. The
    // caller makes sure that nobody else reads the operand.
    bool may_write_over(size_t operand) const;

   private:
    void merge_dimensions(const Descriptor& descriptor);
    void plan_operands(const Descriptor& descriptor);
    void schedule(const Descriptor& descriptor);
    // Each fills in its part of the plan. The first three return whether their kernel can run the node.
    bool find_contraction();
    bool adds_integer_product() const;
    bool find_taps(int x, int y);
    unsigned bound_axes(int o) const;
    int64_t own_positions(const TapPlan& taps) const;
    FoldJoin find_fold_join() const;
    bool find_rows();
    void find_centered();
    void find_exponential();
    void find_key();
    bool find_scatter();
    bool find_guards(int reg);
    bool find_scan(const Descriptor& node);
    bool find_ranks(const Descriptor& node);
    void find_tiles();
    void find_turn();
    void find_columns();
    void find_ending();
    void find_join();
    // Marks the instructions whose NaN bits cannot reach the output.
    void mark_lazy();
    bool keeps_accumulator(int reg, const PlannedInstruction& guard) const;
    std::vector<std::pair<uint32_t, uint32_t>> keyed_terms(const int64_t* bases, const uint32_t* source) const;
    bool is_safe(const PlannedOperand& operand, const int64_t* bases) const;

    Plan plan_{};
    bool fixed_ = true;            // no form depends on the step
    std::vector<int64_t> bases_;   // at step 0, and what is safe then
    bool safe_[kMaxOperands] = {};
    std::vector<Affine> affines_;  // with base and step stride, in the order of forms_
    std::vector<Form> forms_;
    std::vector<PlannedOperand> operands_;
    std::vector<PlannedCoordinate> coordinates_;
    std::vector<uint32_t> constants_;
    std::vector<int> buffers_;
    std::vector<PlannedInstruction> once_, each_, before_;
};

// The instructions of a scalar program by themselves: registers are its inputs, its constants, and the results in
// order.
std::vector<PlannedInstruction> plan_program(const ScalarProgram& program);

}  // namespace pol
