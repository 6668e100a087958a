// Owns OP and POINTWISE: the two declarations that every op family is written in.
// See softplus in activation.cpp for a whole example, CONTRIBUTING.md for a walk through it.
//
// Note [One formula, three readings]
// POINTWISE(name, (T input, S beta), expression) is read three times from the same tokens:
//   - once per instruction set (formula.h) as vectorized loops over numbers;
//   - as text by NVRTC, for CUDA;
//   - by the host compiler (below) with T = Tensor, where it is a chain of differentiable ops.
// The last reading gives gradients of gradients: in an ordinary backward a gradient formula runs
// as one fused loop, with create_graph=True as ops. The letters say what a parameter may be:
//   T float, double    C also complex    I int64, uint64    R those of T and I    N all of these
//   B a bool operand, made of any dtype
//   S a number that is the same for all elements, in the type of the operands
// Write constants as S(0.5), so that float stays float. Half types compute in float.
//
// Note [One op, one place]
// OP(name, "schema", {fields}) holds everything about an op; its row in the op table feeds the
// parser, stubs, docs, tests and benchmarks. Fields, in this order:
//   .home      module where Python finds it, or several with spaces between; "torch" unless said.
//              "private" is _C itself; "core" is nowhere, for ops that trust their arguments
//   .doc       the docstring: a sentence, then the formula
//   .dtypes    what `input` may be; others raise
//   .variants  function | method | inplace; by home and forward unless said
//   .aliases   other names with spaces between; "special.expit" is a function of that module only
//   .is_view   the results share the input's storage
//   .draws     it takes random numbers although it has no argument `generator`
//   .fills     it sets all elements to one number, so they may share memory
//   .returns_input  whether a call, by its first two arguments, only returns its input
//   .seen      what __torch_dispatch__ sees of a call, if not the op or those that it is made of
//   .node      what PyTorch's tape calls the op in its place, if that is another name
//   .gpu       none<"why"> when it has no form for CUDA, as all others have
//   .autocast  the dtype of its arguments under autocast: autocast::lower, single, widest or
//              as_given, or on_cpu or on_cuda of these; see Note [Autocast]
//   .sparse    what it does with sparse tensors, which it refuses unless said: by_forward, when the
//              forward takes them; by_values, the op of the values, when it maps zero to zero;
//              by_entries, when it may be applied to entries before equal ones are added up; or a
//              function in the types of the schema made of other ops. With one argument more,
//              `const Tensor* into`, that writes a dense tensor in place unless it is null.
//   .batch     how vmap runs it on all samples at once, see batch.h; not for ops made of other ops
//   .forward   formula<name> or a lambda in the types of the schema; runs unrecorded when the op
//              has grads, recorded when it is made of other ops. A lambda that takes one argument
//              more, `const Tensor* into`, writes there unless it is null: in place, or to out=.
//   .saves     saves<"input", "result", "input.shape">: what backward needs, and so what it costs
//   .grads     d<"input">(formula<...>) or a lambda (g, saved..., attributes...) for each Tensor
//              argument; no_grad<"index"> for those without. lines<...> is the formula of a
//              function of straight pieces, whose second gradient is zero. d<"a", "b">(lambda) is
//              a joint form that gets a mask last and returns a tuple. uses<"other"> before the
//              lambda names what it needs of .saves, so that nothing is kept or checked in vain.
// An op with an argument `bool inplace` writes its input when that is true; one made of other ops
// sees to that itself.
// Gradients of broadcast or cast inputs come back to the input's shape and dtype by themselves.
#pragma once

#ifdef RUSHLIGHT_ISA
#include "core/tensor/formula.h"
#else

#include "core/ops/ops.h"
#include "core/ops/record.h"

#define OP(NAME, SCHEMA, ...)                                                                  \
  namespace {                                                                                  \
  struct NAME##_op {                                                                           \
    static constexpr const char* name = #NAME;                                                 \
    static constexpr Schema schema = parse_schema(#NAME, SCHEMA);                              \
    static constexpr auto def = [] {                                                           \
      OpDef def __VA_ARGS__;                                                                   \
      return def;                                                                              \
    }();                                                                                       \
  };                                                                                           \
  const detail::Registration NAME##_registration(                                              \
      detail::make_entry<NAME##_op>(__FILE__, __LINE__));                                      \
  }                                                                                            \
  template <>                                                                                  \
  detail::Signature<NAME##_op>* const OpRef<#NAME, detail::Signature<NAME##_op>>::call =       \
      &detail::Invoke<NAME##_op>::plain;

#endif
