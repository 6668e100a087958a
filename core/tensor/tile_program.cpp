// Defines how programs for tiles find memory for their buffers, and how they run.
#include "core/tensor/tile_program.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "core/device/allocator.h"

namespace rushlight {

ISA_TABLES(ChainLoops, chain_loops)

namespace {

constexpr int64_t kBufferGap = kWideAlignment;  // so that not all begin at the same place of a page
constexpr int64_t kNumberGap = 16;              // numbers are aligned to this

PointwiseLoop chain_loop(int64_t item) {
  const ChainLoops& loops = active(chain_loops_sets);
  return item == sizeof(double) ? loops.float64 : loops.float32;
}

bool is_same(const TileProgram::Place& a, const TileProgram::Place& b) {
  return a.kind == b.kind && a.index == b.index;
}

bool is_lane(const TileProgram::Place& place, int lane) {
  return is_same(place, {TileProgram::Place::lane, lane});
}

bool is_one_number(const TileProgram::Place& place) {
  return place.kind == TileProgram::Place::number && place.index == 1;
}

// Lets a single operation begin with its second operand.
void swap_operands(TileProgram::Step& step) {
  std::swap(step.inputs[0], step.inputs[1]);
  Arithmetic& how = step.chain.links[0].how;
  if (how == Arithmetic::subtract) how = Arithmetic::subtract_from;
  else if (how == Arithmetic::divide) how = Arithmetic::divide_from;
}

// Lets a step run as a chain, which begins with what is not one number.
void run_as_chain(TileProgram::Step& step) {
  if (step.chain.count == 1 && has_two_operands(step.chain.links[0].how))
    if (is_one_number(step.inputs[0]) || is_lane(step.inputs[0], step.single)) swap_operands(step);
  step.loop = nullptr;
  step.cast = nullptr;
}

// A chain of `operands` goes on with another one, which begins with what it gives.
Chain joined(Chain chain, size_t operands, const Chain& next) {
  for (Chain::Link link : std::span(next.links, size_t(next.count))) {
    link.operand = int8_t(size_t(link.operand) + operands - 1);
    chain.links[chain.count++] = link;
  }
  return chain;
}

// The links of a chain that have an operand beside what it begins with.
template <class AnyChain>
auto links_with_operands(AnyChain& chain) {
  return std::span(chain.links, size_t(chain.count)) |
         std::views::filter([](const Chain::Link& link) { return has_two_operands(link.how); });
}

// The chain of a step, where links are marked whose other operand is one number, as is lane
// `single`.
Chain marked(const TileProgram::Step& step, int single) {
  Chain chain = step.chain;
  for (Chain::Link& link : links_with_operands(chain)) {
    const auto& input = step.inputs[size_t(link.operand)];
    link.is_number = is_one_number(input) || is_lane(input, single);
  }
  return chain;
}

// Whether a chain reads a lane only where it can take it as one number.
bool reads_number(const TileProgram::Step& step, int lane) {
  return !is_lane(step.inputs[0], lane) &&
         std::ranges::none_of(links_with_operands(step.chain), [&](const Chain::Link& link) {
           return link.element != Element::whole &&
                  is_lane(step.inputs[size_t(link.operand)], lane);
         });
}

}  // namespace

TileProgram::Place TileProgram::add_number(const TileOperand& operand, int64_t copies) {
  int64_t item = int64_t(dtype_size(operand.kernel_dtype)), offset = int64_t(numbers_.size());
  numbers_.resize(size_t(offset + std::max(kNumberGap, item * copies)));
  char* at = numbers_.data() + offset;
  cast_loop(operand.tensor->dtype(), operand.kernel_dtype)(operand.tensor->data(), at, 1);
  copy_run(at, item, at, 0, item, copies);
  return {Place::number, int(copies), offset, 0};
}

const TileProgram::Step& TileProgram::writer_of(const Place& buffer) const {
  return *std::ranges::find_if(steps_, [&](const Step& step) {
    return step.output.kind == Place::buffer && step.output.index == buffer.index;
  });
}

void TileProgram::drop_unread() {
  std::vector<bool> is_read(size_t(buffers_), false);
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (step.output.kind == Place::buffer && !is_read[size_t(step.output.index)]) {
      steps_.erase(steps_.begin() + ptrdiff_t(i));
      continue;
    }
    for (const Place& input : step.inputs)
      if (input.kind == Place::buffer) is_read[size_t(input.index)] = true;
  }
}

// Arithmetic takes less time than its reads and writes: where an operation is the only one to read
// the result of another, both become one step, which keeps that in registers.
void TileProgram::join_chains() {
  std::vector<int> reads(size_t(buffers_), 0);
  for (const Step& step : steps_)
    for (const Place& input : step.inputs)
      if (input.kind == Place::buffer) ++reads[size_t(input.index)];
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& first = steps_[i];
    if (first.chain.count == 0 || first.output.kind != Place::buffer) continue;
    if (reads[size_t(first.output.index)] != 1) continue;
    auto is_between = [&](const Place& input) {
      return input.kind == Place::buffer && input.index == first.output.index;
    };
    Step& second = *std::find_if(steps_.begin() + ptrdiff_t(i), steps_.end(), [&](auto& step) {
      return std::ranges::any_of(step.inputs, is_between);
    });
    const bool goes_on = is_between(second.inputs[0]);
    if (second.chain.count == 0 || (!goes_on && second.chain.count > 1)) continue;
    if (first.chain.count + second.chain.count > Chain::kMost) continue;
    if (!goes_on) swap_operands(second);
    run_as_chain(first);
    run_as_chain(second);
    second.chain = joined(first.chain, first.inputs.size(), second.chain);
    second.inputs.erase(second.inputs.begin());
    second.inputs.insert(second.inputs.begin(), first.inputs.begin(), first.inputs.end());
    steps_.erase(steps_.begin() + ptrdiff_t(i--));
  }
}

// Chains that read what a cast makes of halves read those.
void TileProgram::widen_in_chains() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step cast = steps_[i];
    if (cast.widens == Element::whole || cast.output.kind != Place::buffer) continue;
    if (read_halves(cast.output, cast.inputs[0], cast.widens))
      steps_.erase(steps_.begin() + ptrdiff_t(i--));
  }
}

bool TileProgram::read_halves(const Place& floats, const Place& from, Element halves) {
  auto reads = [&](const Place& input) { return is_same(input, floats); };
  for (const Step& step : steps_)
    if (step.chain.count == 0 && std::ranges::any_of(step.inputs, reads)) return false;
  for (Step& step : steps_) {
    if (std::ranges::none_of(step.inputs, reads)) continue;
    run_as_chain(step);
    if (reads(step.inputs[0])) step.chain.first = halves;
    for (Chain::Link& link : links_with_operands(step.chain))
      if (reads(step.inputs[size_t(link.operand)])) link.element = halves;
    std::ranges::replace_if(step.inputs, reads, from);
  }
  return true;
}

bool TileProgram::takes_halves(int lane, Element halves) {
  return read_halves({Place::lane, lane}, {Place::lane, lane, 0, sizeof(uint16_t)}, halves);
}

bool TileProgram::gives_halves(Element halves) {
  Step& last = *std::ranges::find_if(
      steps_, [](const Step& step) { return step.output.kind == Place::result; });
  if (last.chain.count == 0) return false;
  run_as_chain(last);
  last.chain.result = halves;
  last.output.item = sizeof(uint16_t);
  return true;
}

// A buffer takes the memory of one that nobody reads any more, or new memory.
void TileProgram::finish() {
  drop_unread();
  join_chains();
  widen_in_chains();
  std::vector<size_t> last_use(size_t(buffers_), 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const Place& input : steps_[i].inputs)
      if (input.kind == Place::buffer) last_use[size_t(input.index)] = i;

  std::vector<int64_t> offsets(size_t(buffers_), -1);
  std::vector<Place> free;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    std::vector<Place> ended;
    for (Place& input : step.inputs) {
      if (input.kind != Place::buffer) continue;
      input.offset = offsets[size_t(input.index)];
      bool is_known = std::ranges::any_of(
          ended, [&](const Place& other) { return other.index == input.index; });
      if (last_use[size_t(input.index)] == i && !is_known) ended.push_back(input);
    }
    // A loop may write what it reads, element by element; a cast changes the size of elements.
    if (!step.cast) free.insert(free.end(), ended.begin(), ended.end());
    if (Place& output = step.output; output.kind == Place::buffer) {
      auto fits = std::ranges::find_if(free, [&](const Place& f) { return f.item == output.item; });
      if (fits != free.end()) {
        output.offset = fits->offset;
        free.erase(fits);
      } else {
        output.offset = scratch_;
        scratch_ += kTile * output.item + kBufferGap;
      }
      offsets[size_t(output.index)] = output.offset;
    }
    if (step.cast) free.insert(free.end(), ended.begin(), ended.end());
  }
}

bool TileProgram::takes_single(int lane) const {
  bool takes = false;
  for (const Step& step : steps_) {
    auto reads =
        std::ranges::count_if(step.inputs, [=](auto& input) { return is_lane(input, lane); });
    if (reads == 0) continue;
    bool can = step.runs_chain() ? reads_number(step, lane) : reads == 1 && step.single == lane;
    if (!can) return false;
    takes = true;
  }
  return takes;
}

template <int single>
void TileProgram::run(const void* const* lanes, const void* program, void* result, int64_t n) {
  static_cast<const TileProgram*>(program)->run_on(lanes, single, static_cast<char*>(result), n);
}

PointwiseKernel TileProgram::kernel() const {
  static_assert(kMaxRepeating == 3);
  return {&run<-1>,
          {takes_single(0) ? &run<0> : nullptr, takes_single(1) ? &run<1> : nullptr,
           takes_single(2) ? &run<2> : nullptr}};
}

void TileProgram::run_on(const void* const* lanes, int single, char* result, int64_t n) const {
  CpuBuffer buffers{size_t(scratch_)};
  char* here = static_cast<char*>(buffers.data());
  for (int64_t begin = 0; begin < n; begin += kTile) {
    int64_t count = std::min(kTile, n - begin);
    auto at = [&](const Place& place) -> char* {
      switch (place.kind) {
        case Place::lane:
          return static_cast<char*>(const_cast<void*>(lanes[place.index])) +
                 (place.index == single ? 0 : begin * place.item);
        case Place::buffer: return here + place.offset;
        case Place::number: return const_cast<char*>(numbers_.data()) + place.offset;
        case Place::result: return result + begin * place.item;
      }
      __builtin_unreachable();
    };
    for (const Step& step : steps_) {
      static_assert(kMaxOperands <= Chain::kMost + 1);
      const void* inputs[Chain::kMost + 1];
      for (size_t k = 0; k < step.inputs.size(); ++k) inputs[k] = at(step.inputs[k]);
      char* to = at(step.output);
      if (step.runs_chain()) {
        Chain chain = marked(step, single);
        chain_loop(step.output.item)(inputs, &chain, to, count);
      } else if (step.cast) {
        step.cast(inputs[0], to, count);
      } else {
        bool is_single = single >= 0 && step.single == single;
        (is_single ? step.single_loop : step.loop)(inputs, step.scalars, to, count);
      }
    }
  }
}

}  // namespace rushlight
