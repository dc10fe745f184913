// Runs recorded programs with the kernels alone, without Python, and prints digests of what comes out.
//
// Usage: runner FILE ISA THREADS. The file is written by tests/portable.py: 32-bit little-endian words; arrays have their length
// in front. Prints one line per program and per step: what it is, and keccak-256 of the results as little-endian words.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hashing.h"
#include "native/isa.h"
#include "nodes/kernels.h"
#include "runtime/element.h"
#include "runtime/floating_point_mode.h"
#include "runtime/self_test.h"
#include "runtime/step.h"

namespace {

std::vector<uint32_t> file;
size_t position = 0;

[[noreturn]] void fail(const char* why) {
    std::fprintf(stderr, "runner: %s\n", why);
    std::exit(1);
}

uint32_t next() {
    if (position >= file.size()) fail("the file ends early");
    return file[position++];
}

std::vector<uint32_t> array() {
    const size_t size = next();
    if (size > file.size() - position) fail("the file ends early");
    const std::vector<uint32_t> words(file.begin() + static_cast<ptrdiff_t>(position), file.begin() + static_cast<ptrdiff_t>(position + size));
    position += size;
    return words;
}

// Bytes are stored one in a word.
std::string bytes() {
    std::string text;
    for (const uint32_t word : array()) text.push_back(static_cast<char>(word));
    return text;
}

std::vector<std::vector<uint32_t>> arrays() {
    std::vector<std::vector<uint32_t>> all(next());
    for (auto& one : all) one = array();
    return all;
}

std::vector<pol::Words> views(std::vector<std::vector<uint32_t>>& all) {
    std::vector<pol::Words> words;
    for (auto& one : all) words.push_back({one.data(), static_cast<int64_t>(one.size())});
    return words;
}

std::string digest(const std::vector<uint32_t>& words) {
    uint8_t hash[32];
    pol::hashing().keccak256(reinterpret_cast<const uint8_t*>(words.data()), words.size() * sizeof(uint32_t), hash);
    std::string text;
    char digits[3];
    for (const uint8_t byte : hash) {
        std::snprintf(digits, sizeof digits, "%02x", byte);
        text += digits;
    }
    return text;
}

std::string digest(const std::vector<std::vector<uint32_t>>& all) {
    std::vector<uint32_t> joined;
    for (const auto& one : all) joined.insert(joined.end(), one.begin(), one.end());
    return digest(joined);
}

// A scalar program on rows of words: all its instructions.
void run_program(size_t number) {
    const std::string text = bytes();
    std::vector<std::vector<uint32_t>> inputs = arrays();
    pol::Reader reader(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    const pol::ScalarProgram body = pol::ScalarProgram::read(reader);
    if (inputs.size() != static_cast<size_t>(body.inputs) || inputs.empty()) fail("a program has other inputs");
    const size_t lanes = inputs[0].size();
    std::vector<std::vector<uint32_t>> constants, results(body.instructions.size(), std::vector<uint32_t>(lanes));
    for (const uint32_t word : body.constants) constants.emplace_back(lanes, word);
    std::vector<uint32_t*> registers;
    for (auto& row : inputs) registers.push_back(row.data());
    for (auto& row : constants) registers.push_back(row.data());
    for (auto& row : results) registers.push_back(row.data());
    const std::vector<pol::PlannedInstruction> instructions = pol::plan_program(body);
    const pol::FloatingPointMode mode;
    pol::kernels().program_values(instructions.data(), static_cast<int>(instructions.size()), registers.data(), lanes);
    std::printf("program %zu %s\n", number, digest(results).c_str());
}

// Some elements of a node, followed term by term: they have the words of its output.
void follow_elements(const std::string& text, uint32_t step, const std::vector<pol::Words>& state, const std::vector<pol::Words>& constants,
                     const std::vector<pol::Words>& outputs, const pol::Words& output) {
    const pol::Descriptor node = pol::Descriptor::parse(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    std::vector<const uint32_t*> sources;
    for (const pol::Operand& operand : node.operands)
        sources.push_back((operand.source == pol::kState ? state : operand.source == pol::kConstant ? constants : outputs)[operand.index].data);
    for (const int64_t number : {int64_t{0}, node.numel / 2, node.numel - 1}) {
        const pol::Element element(node, number);
        uint32_t found[3], again[2];
        element.accumulators(step, sources.data(), 0, node.init, {node.terms / 3, node.terms - 1, node.terms}, found);
        element.accumulators(step, sources.data(), node.terms / 3, found[0], {node.terms - 1, node.terms}, again);
        std::vector<uint32_t> results(node.body.instructions.size());
        element.results(step, sources.data(), node.terms - 1, found[1], results.data());
        for (const uint32_t word : {found[2], again[1], results.back()})
            if (word != output.data[number]) fail("an element followed term by term has other bits");
        if (again[0] != found[1]) fail("an accumulator depends on where its chain was begun");
    }
}

// A step program over some steps: all nodes' outputs, and the next state computed again without them.
void run_steps(size_t number, size_t threads) {
    std::vector<std::string> descriptors(next());
    for (auto& descriptor : descriptors) descriptor = bytes();
    const std::vector<uint32_t> output_sizes = array(), producers = array();
    std::vector<std::vector<uint32_t>> state = arrays(), constants = arrays();
    const uint32_t first = next(), count = next();
    const auto sizes = [](const std::vector<std::vector<uint32_t>>& all) {
        std::vector<int64_t> out;
        for (const auto& one : all) out.push_back(static_cast<int64_t>(one.size()));
        return out;
    };
    pol::Step step(descriptors, sizes(state), sizes(constants));
    std::vector<uint32_t> kept;
    std::vector<size_t> place;
    for (const uint32_t producer : producers) {
        size_t i = 0;
        while (i < kept.size() && kept[i] != producer) ++i;
        if (i == kept.size()) kept.push_back(producer);
        place.push_back(i);
    }
    step.keep(kept);
    std::vector<std::vector<uint32_t>> outputs, results;
    for (const uint32_t size : output_sizes) outputs.emplace_back(size);
    for (const uint32_t node : kept) results.emplace_back(output_sizes[node]);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t t = first + i;
        step.run(t, views(state), views(constants), views(outputs), threads);
        for (size_t n = 0; n < outputs.size(); ++n)
            follow_elements(descriptors[n], t, views(state), views(constants), views(outputs), views(outputs)[n]);
        step.advance(t, views(state), views(constants), views(results), threads);
        for (size_t k = 0; k < kept.size(); ++k)
            if (results[k] != outputs[kept[k]]) fail("the next state without the other outputs has other bits");
        for (size_t slot = 0; slot < state.size(); ++slot) state[slot] = results[place[slot]];
        std::printf("step %zu %u %s %s\n", number, t, digest(outputs).c_str(), digest(state).c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines before a failure are not lost
    if (argc != 4) fail("three arguments are needed: FILE ISA THREADS");
    std::FILE* in = std::fopen(argv[1], "rb");
    if (in == nullptr) fail("the file cannot be read");
    uint32_t words[4096];
    for (size_t n; (n = std::fread(words, sizeof words[0], 4096, in)) > 0;) file.insert(file.end(), words, words + n);
    std::fclose(in);
    if (!pol::set_isa(argv[2])) fail("this build or processor lacks the instruction set");
    std::printf("self-test %s\n", digest(pol::self_test_words()).c_str());
    const uint32_t programs = next(), step_programs = next();
    try {
        for (size_t i = 0; i < programs; ++i) run_program(i);
        for (size_t i = 0; i < step_programs; ++i) run_steps(i, std::strtoul(argv[3], nullptr, 10));
    } catch (const pol::Malformed& error) {
        fail(error.what());
    }
    if (position != file.size()) fail("the file is longer than what it says");
    return 0;
}
