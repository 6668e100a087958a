// Defines names and promotion of the dtypes.
#include "core/base/dtype.h"

#include <algorithm>

namespace rushlight {

const char* dtype_name(DType dtype) {
  static constexpr const char* names[] = {
#define RUSHLIGHT_NAME(type, name) #name,
      RUSHLIGHT_DTYPES(RUSHLIGHT_NAME) RUSHLIGHT_STORED_DTYPES(RUSHLIGHT_NAME)
#undef RUSHLIGHT_NAME
  };
  return is_bool(dtype) ? "bool" : names[int(dtype)];
}

DType real_dtype(DType dtype) {
  if (dtype == DType::complex64) return DType::float32;
  if (dtype == DType::complex128) return DType::float64;
  return dtype;
}

DType complex_dtype(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::float64 ? DType::complex128 : DType::complex64;
}

namespace {

int category(DType t) {
  return is_complex(t) ? 3 : is_floating(t) || is_float8(t) ? 2 : is_integral(t) ? 1 : 0;
}

DType promote_integers(DType a, DType b) {
  size_t sa = dtype_size(a), sb = dtype_size(b);
  if (is_unsigned(a) == is_unsigned(b)) return sa >= sb ? a : b;
  DType with_sign = is_unsigned(a) ? b : a;
  size_t unsigned_size = is_unsigned(a) ? sa : sb;
  if (unsigned_size < dtype_size(with_sign)) return with_sign;
  CHECK(unsigned_size < 8,
        "Promotion for uint64 with a signed type is not supported, attempted to promote ",
        dtype_name(a), " and ", dtype_name(b), ". Convert one of them with .to(dtype) first.");
  return unsigned_size == 1 ? DType::int16 : unsigned_size == 2 ? DType::int32 : DType::int64;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  CHECK(!is_float8(a) && !is_float8(b),
        "Promotion for Float8 Types is not supported, attempted to promote ", dtype_name(a),
        " and ", dtype_name(b), ". Convert one of them with .to(dtype) first.");
  int ca = category(a), cb = category(b);
  if (ca < cb) return promote(b, a);  // from here a is of the same or the higher category
  if (ca == 3) {
    if (cb < 2) return a;
    return real_dtype(a) == DType::float64 || real_dtype(b) == DType::float64 ? DType::complex128
                                                                              : DType::complex64;
  }
  if (ca != cb) return a;
  if (ca == 2) return is_half(a) && is_half(b) ? DType::float32 : std::max(a, b);
  return promote_integers(a, b);
}

void refuse_stored_dtype(DType dtype) {
  CHECK(false, ErrorKind::kNotImplemented, "not implemented for ", dtype_name(dtype),
        ". Use input.float().");
  __builtin_unreachable();
}

bool can_cast(DType from, DType to) { return category(from) <= category(to); }

}  // namespace rushlight
