// Owns the inverses of erf and erfc, which the C library lacks.
#pragma once

namespace shim {

double erfinv(double x);
double erfcinv(double x);

}  // namespace shim
