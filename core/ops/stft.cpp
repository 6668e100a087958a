// Owns the short-time Fourier transform and its inverse, which are made of other ops.
//
// Frames are a view on the signal, in which they overlap; the inverse adds them up with the
// gradient of that view.
#include <cmath>

#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

// More samples than any memory holds.
constexpr int64_t kMaxLength = int64_t(1) << 48;

// Zeros before and after the elements of the last dim.
Tensor between_zeros(const Tensor& input, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return input;
  Shape sizes = input.sizes();
  auto zeros_of = [&](int64_t length) {
    sizes.back() = length;
    return zeros(sizes, input.dtype(), input.device());
  };
  const Tensor parts[] = {zeros_of(before), input, zeros_of(after)};
  return cat(parts, -1);
}

// `pad` more elements on both sides of the last dim.
Tensor padded(const Tensor& input, int64_t pad, std::string_view mode) {
  if (mode == "constant") return between_zeros(input, pad, pad);
  int64_t n = input.size(-1);
  auto check_room = [&](int64_t limit) {
    CHECK(pad <= limit, "Padding size ", pad, " on both sides, n_fft / 2, is too large for ", n,
          " samples and pad_mode \"", mode, "\", which allows ", limit, ".");
  };
  auto run = [&](int64_t start, int64_t length) { return narrow(input, -1, start, length); };
  if (mode == "reflect") {
    check_room(n - 1);
    const int64_t last = input.dim() - 1;
    auto mirrored = [&](int64_t start) {
      return call<"flip", Tensor>(run(start, pad), ShapeRef(&last, 1));
    };
    const Tensor parts[] = {mirrored(1), input, mirrored(n - 1 - pad)};
    return cat(parts, -1);
  }
  Shape sizes = input.sizes();
  sizes.back() = pad;
  if (mode == "replicate") {
    check_room(n == 0 ? 0 : pad);
    const Tensor parts[] = {expand(run(0, 1), sizes), input, expand(run(n - 1, 1), sizes)};
    return cat(parts, -1);
  }
  CHECK(mode == "circular", ErrorKind::kNotImplemented, "Unrecognized padding mode ", mode,
        ". Use constant, reflect, replicate or circular.");
  check_room(n);
  const Tensor parts[] = {run(n - pad, pad), input, run(0, pad)};
  return cat(parts, -1);
}

// The lengths and the window that both transforms take, with their defaults.
struct Frames {
  int64_t n_fft, hop, win_length;
  Tensor window;  // of n_fft elements

  Frames(const Tensor& input, int64_t n, std::optional<int64_t> hop_length,
         std::optional<int64_t> length, const Tensor& given)
      : n_fft(n), hop(hop_length.value_or(n / 4)), win_length(length.value_or(n)) {
    CHECK(0 < win_length && win_length <= n_fft,
          "expected 0 < win_length <= n_fft, but got "
          "win_length=",
          win_length, " and n_fft=", n_fft, ".");
    CHECK(hop > 0, "expected hop_length > 0, but got hop_length=", hop, ".");
    CHECK(!given.defined() || (given.dim() == 1 && given.size(0) == win_length),
          "expected a 1D window tensor of size equal to win_length=", win_length,
          ", but got window with size ", given.defined() ? given.sizes() : Shape{}, ".");
    if (!given.defined() && warn_user)
      warn_user(
          "A window was not provided: frames are cut out as they are, which leaks between "
          "frequencies. Pass window=torch.hann_window(win_length), or torch.ones.");
    Tensor middle = given.defined()
                        ? given
                        : full(Shape{win_length}, 1, real_dtype(input.dtype()), input.device());
    int64_t left = (n_fft - win_length) / 2;
    window = between_zeros(middle, left, n_fft - win_length - left);
  }
};

void check_real(bool onesided, const Tensor& input, const Tensor& window) {
  CHECK(!onesided || (!is_complex(input.dtype()) && !is_complex(window.dtype())),
        "Cannot have onesided output if window or input is complex.");
}

// Adds frames (batch, frames, n_fft) that begin `hop` samples apart: (batch, samples).
Tensor overlap_added(const Tensor& frames, int64_t hop) {
  int64_t n = frames.size(2);
  Shape sizes{frames.size(0), n + hop * (frames.size(1) - 1)};
  return window_backward(frames, sizes, unfold_window(row_major(sizes), 1, n, hop));
}

}  // namespace

OP(stft, "(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, "
         "Tensor? window=None, bool center=True, str pad_mode='reflect', bool normalized=False, "
         "bool? onesided=None, bool? return_complex=None, "
         "bool? align_to_window=None) -> Tensor", {
  .doc     = R"(The Fourier transforms of overlapping frames of a signal, each times a window.

Args:
    input: (samples,) or (batch, samples).
    n_fft: the length of a frame.
    hop_length: how many samples apart frames begin; n_fft // 4 by default.
    win_length: the length of window, which zeros around fill up to n_fft; n_fft by default.
    window: ones by default.
    center: whether frame t is centered at sample t * hop_length, with n_fft // 2 samples added on
        both sides as pad_mode says.
    normalized: whether to divide by sqrt(n_fft).
    onesided: whether to give n_fft // 2 + 1 frequencies only; True for real numbers by default.
    return_complex: False gives pairs of real numbers in a last dim instead.
    align_to_window: without center, whether the first window, not the first frame, begins with the
        signal.

Returns (batch, frequencies, frames).

Example:
    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9]))",
  .dtypes  = full_precision,
  .variants = function | method,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
                std::optional<int64_t> win_length, const Tensor& window, bool center,
                std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
                std::optional<bool> return_complex, std::optional<bool> align_to_window) {
    CHECK(input.dim() == 1 || input.dim() == 2, "expected a 1D or 2D tensor, got shape ",
          input.sizes(), ".");
    CHECK(!center || !align_to_window,
          "align_to_window should only be set when center = false.");
    bool is_real = !is_complex(input.dtype()) && !(window.defined() && is_complex(window.dtype()));
    CHECK(return_complex || !is_real,
          "requires the return_complex parameter be given for real inputs. "
          "Pass return_complex=True.");
    CHECK(n_fft > 0, "expected n_fft > 0, but got n_fft=", n_fft, ".");
    Frames frames(input, n_fft, hop_length, win_length, window);
    bool half = onesided.value_or(is_real);
    check_real(half, input, frames.window);
    int64_t edge = n_fft - frames.win_length;
    Tensor signal = center ? padded(input, n_fft / 2, pad_mode)
                    : align_to_window.value_or(false)
                        ? between_zeros(input, edge / 2, edge - edge / 2)
                        : input;
    CHECK(n_fft <= signal.size(-1), "expected 0 < n_fft <= ", signal.size(-1), ", but got n_fft=",
          n_fft, ".");
    Tensor x = call<"unfold", Tensor>(signal, int64_t(-1), n_fft, frames.hop) * frames.window;
    std::optional<std::string_view> norm;
    if (normalized) norm = "ortho";
    Tensor result = half ? call<"rfft", Tensor>(x, std::optional<int64_t>(), int64_t(-1), norm)
                         : call<"fft", Tensor>(x, std::optional<int64_t>(), int64_t(-1), norm);
    result = transpose(result, -1, -2);
    return return_complex.value_or(true) ? result : call<"view_as_real", Tensor>(result);
  },
})

OP(istft, "(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, "
          "Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, "
          "int? length=None, bool return_complex=False) -> Tensor", {
  .doc     = R"(The signal whose stft is nearest to input in the least-squares sense.

Frames are added up and divided by the sum of squared windows, which must not be zero anywhere
(D. W. Griffin, J. S. Lim: Signal estimation from modified short-time Fourier transform, 1984).

Args:
    input: complex, (frequencies, frames) or (batch, frequencies, frames).
    n_fft, hop_length, win_length, window, center, normalized, onesided: as in stft.
    length: how many samples to give, (frames - 1) * hop_length by default with center.
    return_complex: whether the signal is complex.

Example:
    >>> x, window = torch.arange(8.0), torch.hann_window(4)
    >>> torch.istft(torch.stft(x, 4, window=window, return_complex=True), 4, window=window)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.]))",
  .variants = function | method,
  .forward = [](const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
                std::optional<int64_t> win_length, const Tensor& window, bool center,
                bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
                bool return_complex) {
    CHECK(is_complex(input.dtype()), "requires a complex-valued input tensor matching the output "
          "from stft with return_complex=True, got ", dtype_name(input.dtype()), ".");
    CHECK(input.dim() == 2 || input.dim() == 3,
          "expected a tensor with 2 or 3 dimensions, but got shape ", input.sizes(), ".");
    CHECK(input.numel() > 0, "input tensor cannot be empty, got shape ", input.sizes(), ".");
    Frames frames(input, n_fft, hop_length, win_length, window);
    CHECK(frames.hop <= frames.win_length, "expected 0 < hop_length <= win_length, but got "
          "hop_length=", frames.hop, " and win_length=", frames.win_length, ".");
    CHECK(return_complex || !is_complex(frames.window.dtype()),
          "Complex windows are incompatible with return_complex=False.");
    int64_t count = input.size(-2);
    bool half = onesided.value_or(count != n_fft);
    CHECK(!half || !return_complex, "Cannot have onesided output if window or input is complex.");
    CHECK(count == (half ? n_fft / 2 + 1 : n_fft),
          "expected the frequency dimension (-2) of the input tensor to match ",
          half ? "n_fft / 2 + 1 when onesided=True" : "n_fft when onesided=False", ", but got ",
          count, " and n_fft=", n_fft, ".");
    CHECK(length.value_or(1) > 0 && length.value_or(1) < kMaxLength,
          "expected 0 < length < 2^48, but got length=", *length, ".");

    Tensor x = transpose(input.dim() == 2 ? unsqueeze(input, 0) : input, 1, 2);
    std::optional<int64_t> n = n_fft;
    std::optional<std::string_view> norm;
    if (normalized) norm = "ortho";
    x = return_complex ? call<"ifft", Tensor>(x, n, int64_t(-1), norm)
                       : call<"irfft", Tensor>(x, n, int64_t(-1), norm);
    Tensor squares = frames.window * frames.window;
    Tensor signal = overlap_added(x * frames.window, frames.hop);
    Tensor envelope = overlap_added(expand(squares, Shape{1, x.size(1), n_fft}), frames.hop);

    int64_t samples = signal.size(1), edge = center ? n_fft / 2 : 0;
    int64_t end = length ? edge + *length : samples - edge;
    int64_t known = std::min(end, samples) - edge;
    CHECK(known > 0, "expected more than ", samples, " samples in all frames for n_fft=", n_fft,
          " and center=True.");
    envelope = narrow(envelope, 1, edge, known);
    CHECK(!has_values(envelope) || all_true(abs(envelope) >= 1e-11),
          "window overlap add min: 1: some sample has no weight in any window. "
          "Use a smaller hop_length, or center=True.");
    signal = between_zeros(narrow(signal, 1, edge, known) / envelope, 0, end - edge - known);
    return input.dim() == 2 ? squeeze(signal, 0) : signal;
  },
})

}  // namespace rushlight
