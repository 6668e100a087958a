// What test_cpp_extension.py compiles: programs as they are written for PyTorch, where this file
// compiles, too.
#include <torch/extension.h>

#include <tuple>
#include <vector>

using torch::indexing::Ellipsis;
using torch::indexing::None;
using torch::indexing::Slice;

// ---- ops ---------------------------------------------------------------------------------------

torch::Tensor sigmoid_slope(torch::Tensor z) {
  auto s = torch::sigmoid(z);
  return (1 - s) * s;
}

// A recurrent cell, of PyTorch's tutorial on extensions.
std::vector<at::Tensor> cell(torch::Tensor input, torch::Tensor weights, torch::Tensor bias,
                             torch::Tensor old_h, torch::Tensor old_cell) {
  auto both = torch::cat({old_h, input}, /*dim=*/1);
  auto gates = torch::addmm(bias, both, weights.transpose(0, 1)).chunk(3, /*dim=*/1);
  auto new_cell = old_cell + torch::elu(gates[2], /*alpha=*/1.0) * torch::sigmoid(gates[0]);
  return {torch::tanh(new_cell) * torch::sigmoid(gates[1]), new_cell};
}

std::tuple<at::Tensor, at::Tensor> largest(const at::Tensor& x) { return x.max(/*dim=*/1); }

std::vector<at::Tensor> reductions(const at::Tensor& x) {
  return {x.sum(), x.sum(1), x.sum({0, 1}), x.sum(1, /*keepdim=*/true), x.mean(),
          x.std(), x.norm(), x.argmax(1),   std::get<0>(x.sort(1)),     at::logsumexp(x, {1})};
}

std::vector<at::Tensor> arithmetic(const at::Tensor& a, const at::Tensor& b) {
  auto c = a.clone();
  c += b;
  c *= 2;
  c.sub_(1).clamp_(-1, 1);
  return {a + 1, 2.5 - a, a / b, -a, a == b, a > 0, (a > 0) & (b > 0), at::where(a > b, a, b), c};
}

std::vector<at::Tensor> parts(at::Tensor x) {
  auto y = x.clone();
  y.index_put_({0, Slice(None, 2)}, -1);
  y.index_put_({Ellipsis, 3}, x.index({Slice(), 0}));
  return {x[1],
          x.slice(/*dim=*/1, /*start=*/1, /*end=*/3),
          x.index({Slice(None, None, 2), "..."}),
          x.index({x > 0}),
          x.narrow(1, 0, 2),
          x.view({-1}),
          x.unsqueeze(0).expand({2, -1, -1}),
          y};
}

std::vector<at::Tensor> made(const at::Tensor& x) {
  auto options = torch::TensorOptions().dtype(torch::kInt64).device(torch::kCPU);
  return {torch::zeros({2, 3}),
          torch::full({2}, 7, options),
          torch::arange(5),
          torch::arange(0, 1, 0.25),
          torch::ones_like(x),
          torch::eye(2, x.options()),
          x.new_zeros({2}),
          torch::linspace(0, 1, 3, torch::dtype(torch::kFloat64)),
          torch::tensor({1, 2, 3}),
          torch::tensor({0.5, 1.5}),
          torch::zeros({1}, torch::requires_grad(true))};
}

// ---- elements ----------------------------------------------------------------------------------

at::Tensor multiply_add(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat);
  TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
  at::Tensor left = a.contiguous(), right = b.contiguous();
  at::Tensor result = torch::empty(left.sizes(), left.options());
  const float *x = left.data_ptr<float>(), *y = right.const_data_ptr<float>();
  float* out = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) out[i] = x[i] * y[i] + float(c);
  return result;
}

at::Tensor row_sums(const at::Tensor& x) {
  auto y = torch::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "row_sums", ([&] {
                                    auto in = x.accessor<scalar_t, 2>();
                                    auto out = y.accessor<scalar_t, 1>();
                                    at::parallel_for(0, x.size(0), 1,
                                                     [&](int64_t begin, int64_t end) {
                                                       for (int64_t i = begin; i < end; ++i) {
                                                         float sum = 0;
                                                         for (int64_t j = 0; j < in.size(1); ++j)
                                                           sum += float(in[i][j]);
                                                         out[i] = scalar_t(sum);
                                                       }
                                                     });
                                  }));
  return y;
}

// Ops on several threads.
double work_in_parallel(const at::Tensor& x) {
  std::vector<double> sums(16);
  at::parallel_for(0, 16, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums[size_t(i)] = (x * double(i)).sum().item<double>();
  });
  double all = 0;
  for (double sum : sums) all += sum;
  return all;
}

static int freed = 0;
at::Tensor own_memory() {
  auto* numbers = new float[6]{0, 1, 2, 3, 4, 5};
  auto free = [](void* memory) {
    delete[] static_cast<float*>(memory);
    ++freed;
  };
  return torch::from_blob(numbers, {2, 3}, free, at::kFloat);
}

// What has no name is written to; a variable becomes another tensor.
at::Tensor assigned(const at::Tensor& x) {
  auto y = torch::zeros_like(x), z = y;
  y[0] = x[1];
  y[1] = 2.5;
  y.index({2, 3}) = 9;
  y[0] += 1;
  z = x;
  return y;
}

// ---- what tensors are like ---------------------------------------------------------------------

std::string described(const at::Tensor& x) {
  std::ostringstream text;
  text << x.dim() << ' ' << x.sizes() << ' ' << x.strides() << ' ' << x.size(-1) << ' ' << x.numel()
       << ' ' << x.scalar_type() << ' ' << x.device() << ' ' << x.is_contiguous() << ' '
       << x.requires_grad() << ' ' << x.is_leaf() << ' ' << x.element_size() << ' ' << x.nbytes();
  return text.str();
}

std::string types(const at::Tensor& x) {
  std::ostringstream text;
  text << x.dtype() << ' ' << x.dtype().itemsize() << ' ' << x.type().scalarType() << ' '
       << at::DeviceTypeName(x.type().device_type(), true) << ' ' << (x.layout() == at::kStrided)
       << ' ' << x.type().is_cuda() << ' '
       << (torch::zeros({2}, x.type()).dtype().toScalarType() == x.scalar_type());
  int64_t sum = 0;
  for (auto i : c10::irange(1, int64_t(4))) sum += i;
  text << ' ' << sum;
  return text.str();
}

bool is_given(const std::optional<at::Tensor>& x) { return x.has_value(); }
double number(const at::Scalar& x) { return x.toDouble(); }
at::Tensor summed(const at::Tensor& x, std::vector<int64_t> dims) { return x.sum(dims); }
at::Tensor joined(std::vector<at::Tensor> tensors) { return at::stack(tensors); }
at::Tensor converted(const at::Tensor& x, at::ScalarType dtype) {
  return x.to(x.device()).to(x.options().dtype(dtype)).to(dtype, /*non_blocking=*/true);
}

void fail(const std::string& how) {
  TORCH_CHECK_VALUE(how != "value", "a bad value: ", 3);
  TORCH_CHECK_INDEX(how != "index", "a bad index");
  TORCH_CHECK_TYPE(how != "type", "a bad type");
  TORCH_CHECK_NOT_IMPLEMENTED(how != "not implemented", "not there");
  if (how == "dim") torch::zeros({2}).sum(3);
  if (how == "thread")
    at::parallel_for(0, 4, 1, [](int64_t, int64_t) { TORCH_CHECK(false, "in a thread"); });
  if (how == "index in a thread")
    at::parallel_for(0, 4, 1, [](int64_t, int64_t) { torch::ones({2}).index({5}); });
  if (how == "undefined") torch::ones({2}) + at::Tensor();
  if (how == "undefined method") at::Tensor().to(at::kDouble);
  if (how == "no memory") torch::from_blob(nullptr, {3});
  if (how == "nothing saved") torch::autograd::AutogradContext().saved_data["x"].toDouble();
  TORCH_CHECK_EQ(2, how == "compare" ? 3 : 2);
  if (how == "caught") {
    try {
      torch::ones({2}).matmul(torch::ones({3}));
    } catch (const c10::Error&) {
      TORCH_CHECK(false, "caught");
    }
  }
}

// ---- gradients ---------------------------------------------------------------------------------

at::Tensor detached(const at::Tensor& x) {
  torch::NoGradGuard guard;
  return x * 2;
}

struct Scale : torch::autograd::Function<Scale> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, at::Tensor x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x * x * factor;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto x = ctx->get_saved_variables()[0];
    return {grads[0] * 2 * x * ctx->saved_data["factor"].toDouble(), at::Tensor()};
  }
};
at::Tensor scale(const at::Tensor& x, double factor) { return Scale::apply(x, factor); }

struct Either : torch::autograd::Function<Either> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx, at::Tensor x,
                                                std::optional<at::Tensor> y) {
    ctx->save_for_backward({x, y.value_or(at::Tensor())});
    return {x * 2, y ? *y * 2 : at::Tensor()};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto saved = ctx->get_saved_variables();
    return {grads[0] * 2, saved[1].defined() ? grads[1] * 2 : at::Tensor()};
  }
};
std::vector<at::Tensor> either(at::Tensor x, std::optional<at::Tensor> y) {
  return Either::apply(x, y);
}

void in_threads() {
  at::parallel_for(0, 8, 1, [](int64_t, int64_t) { scale(torch::ones({2}).sinh(), 2.0); });
}

at::Tensor slope(at::Tensor x) {
  py::gil_scoped_release release;
  x = x.detach().requires_grad_(true);
  (x * x).sum().backward();
  return x.grad();
}

// ---- operators ---------------------------------------------------------------------------------

at::Tensor thrice(const at::Tensor& x) { return x * 3; }
at::Tensor halved(const at::Tensor& x) { return x / 2; }
at::Tensor shifted(const at::Tensor& x, double by, std::optional<int64_t> times) {
  return x + by * double(times.value_or(1));
}

c10::Dict<std::string, at::Tensor> doubled(const c10::Dict<std::string, at::Tensor>& tensors) {
  c10::Dict<std::string, at::Tensor> result;
  for (const auto& entry : tensors) result.insert(entry.key(), entry.value() * 2);
  return result;
}

static auto older = torch::RegisterOperators()
                        .op("cpp_extension_older::doubled", &doubled)
                        .op("cpp_extension_older::version", []() -> int64_t { return 3; });

// Kernels of another file may be there first.
TORCH_LIBRARY_IMPL(cpp_extension_test, CPU, m) { m.impl("thrice", &thrice); }
TORCH_LIBRARY(cpp_extension_test, m) {
  m.def("thrice(Tensor x) -> Tensor");
  m.def("shifted", &shifted);
  m.def("halved(Tensor x) -> Tensor", torch::dispatch(c10::DispatchKey::CPU, &halved));
  m.impl("halved", torch::kMeta, [](const at::Tensor& x) { return at::empty_like(x); });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sigmoid_slope", &sigmoid_slope);
  m.def("cell", &cell);
  m.def("largest", &largest);
  m.def("reductions", &reductions);
  m.def("arithmetic", &arithmetic);
  m.def("parts", &parts);
  m.def("made", &made);
  m.def("multiply_add", &multiply_add, "a * b + c", py::arg("a"), py::arg("b"), py::arg("c") = 0.0);
  m.def("row_sums", &row_sums);
  m.def("work_in_parallel", &work_in_parallel);
  m.def("assigned", &assigned);
  m.def("own_memory", &own_memory);
  m.def("freed", [] { return freed; });
  m.def("described", &described);
  m.def("types", &types);
  m.def("doubled", &doubled);
  m.def("is_given", &is_given);
  m.def("number", &number);
  m.def("summed", &summed);
  m.def("joined", &joined);
  m.def("converted", &converted);
  m.def("fail", &fail);
  m.def("detached", &detached);
  m.def("scale", &scale);
  m.def("either", &either);
  m.def("in_threads", &in_threads, py::call_guard<py::gil_scoped_release>());
  m.def("slope", &slope);
  m.def("without_lock", &sigmoid_slope, py::call_guard<py::gil_scoped_release>());
}
