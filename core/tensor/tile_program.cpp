// Defines how programs for tiles find memory for their buffers, and how they run.
#include "core/tensor/tile_program.h"

#include <algorithm>

#include "core/device/allocator.h"
#include "core/tensor/round_loops.h"

namespace rushlight {

ISA_TABLES(RoundLoops, round_loops)
ISA_TABLES(PairLoops, pair_loops)

namespace {

constexpr int64_t kBufferGap = kWideAlignment;  // so that not all begin at the same place of a page
constexpr int64_t kNumberGap = 16;              // numbers are aligned to this

}  // namespace

TileProgram::Place TileProgram::add_number(const TileOperand& operand, int64_t copies) {
  int64_t item = int64_t(dtype_size(operand.kernel_dtype)), offset = int64_t(numbers_.size());
  numbers_.resize(size_t(offset + std::max(kNumberGap, item * copies)));
  char* at = numbers_.data() + offset;
  cast_loop(operand.tensor->dtype(), operand.kernel_dtype)(operand.tensor->data(), at, 1);
  copy_run(at, item, at, 0, item, copies);
  return {Place::number, int(copies), offset, 0};
}

CastLoop rounding_loop(DType dtype, DType through) {
  if (dtype != DType::float32) return nullptr;
  const RoundLoops& loops = active(round_loops_sets);
  return through == DType::float16    ? loops.float16
         : through == DType::bfloat16 ? loops.bfloat16
                                      : nullptr;
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
    for (const Place& input : std::span(step.inputs, size_t(step.input_count)))
      if (input.kind == Place::buffer) is_read[size_t(input.index)] = true;
  }
}

// An input for a loop that wants a tile, also of a number.
TileProgram::Place TileProgram::repeated(const Place& input, int64_t item) {
  if (input.kind != Place::number || input.index == kTile) return input;
  int64_t offset = int64_t(numbers_.size());
  numbers_.resize(size_t(offset + item * kTile));
  copy_run(numbers_.data() + offset, item, numbers_.data() + input.offset, 0, item, kTile);
  return {Place::number, int(kTile), offset, 0};
}

// Arithmetic takes less time than its reads and writes: where an operation is the only one to read
// the result of another, both become one step.
void TileProgram::join_pairs() {
  std::vector<int> reads(size_t(buffers_), 0);
  auto for_each_buffer = [&](const Step& step, auto&& f) {
    for (int k = 0; k < step.input_count; ++k)
      if (step.inputs[k].kind == Place::buffer) f(k, step.inputs[k].index);
  };
  for (const Step& step : steps_)
    for_each_buffer(step, [&](int, int buffer) { ++reads[size_t(buffer)]; });
  auto is_plain = [](const Step& step) { return step.arithmetic && step.single < 0; };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step first = steps_[i];
    if (!is_plain(first) || first.output.kind != Place::buffer) continue;
    if (reads[size_t(first.output.index)] != 1) continue;
    int place = -1;
    Step* second = &steps_[i];
    while (place < 0)
      for_each_buffer(*++second,
                      [&](int k, int b) { place = b == first.output.index ? k : place; });
    if (!is_plain(*second)) continue;
    int64_t item = first.output.item;
    second->loop =
        active(pair_loops_sets)
            .run[item == sizeof(double)][int(*first.arithmetic)][int(*second->arithmetic)][place];
    Place other = second->inputs[1 - place];
    second->arithmetic.reset();
    second->input_count = 3;
    for (int k = 0; k < 2; ++k) second->inputs[k] = repeated(first.inputs[k], item);
    second->inputs[2] = repeated(other, item);
    steps_.erase(steps_.begin() + ptrdiff_t(i--));
  }
}

// A buffer takes the memory of one that nobody reads any more, or new memory.
void TileProgram::finish() {
  drop_unread();
  join_pairs();
  std::vector<size_t> last_use(size_t(buffers_), 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const Place& input : std::span(steps_[i].inputs, size_t(steps_[i].input_count)))
      if (input.kind == Place::buffer) last_use[size_t(input.index)] = i;

  std::vector<int64_t> offsets(size_t(buffers_), -1);
  std::vector<Place> free;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    std::vector<Place> ended;
    for (Place& input : std::span(step.inputs, size_t(step.input_count))) {
      if (input.kind != Place::buffer) continue;
      input.offset = offsets[size_t(input.index)];
      bool is_known = std::ranges::any_of(
          ended, [&](const Place& other) { return other.index == input.index; });
      if (last_use[size_t(input.index)] == i && !is_known) ended.push_back(input);
    }
    // A loop may write what it reads, element by element; a cast changes the size of elements.
    if (step.loop) free.insert(free.end(), ended.begin(), ended.end());
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
    auto reads = std::count_if(step.inputs, step.inputs + step.input_count, [=](auto& input) {
      return input.kind == Place::lane && input.index == lane;
    });
    if (reads == 0) continue;
    if (reads > 1 || step.single != lane) return false;
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
      const void* inputs[kMaxOperands];
      for (int k = 0; k < step.input_count; ++k) inputs[k] = at(step.inputs[k]);
      bool is_single = single >= 0 && step.single == single;
      if (step.cast) step.cast(inputs[0], at(step.output), count);
      else (is_single ? step.single_loop : step.loop)(inputs, step.scalars, at(step.output), count);
    }
  }
}

}  // namespace rushlight
