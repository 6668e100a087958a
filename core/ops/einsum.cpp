// Owns einsum: sums of products that an equation gives, reduced to diagonals, sums, permutations
// and matrix products of two operands at a time. Gradients are those of these ops.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/ops/op.h"

namespace rushlight {
namespace {

// Labels are numbers: letters in the order of ASCII, then the dims that an ellipsis stands for,
// counted from the last one.
using Labels = Shape;
constexpr int64_t kLetters = 52;

int64_t label_of(char c, size_t place) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  CHECK(c >= 'a' && c <= 'z', "invalid subscript given at index ", place,
        " in the equation string: '", c, "'. Subscripts must be in [a-zA-Z].");
  return 26 + (c - 'a');
}

std::string label_text(int64_t label) {
  if (label >= kLetters) return "...";
  return std::string(1, char(label < 26 ? 'A' + label : 'a' + (label - 26)));
}

bool contains(const Labels& labels, int64_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// One side of a comma: labels before an ellipsis, if there is one, and after it.
struct Subscripts {
  Labels before, after;
  bool has_ellipsis = false;

  // `start` is the place of the text in the equation.
  Subscripts(std::string_view text, size_t start) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      if (text[i] == '.') {
        CHECK(!has_ellipsis && text.substr(i, 3) == "...", "found '.' at index ", start + i,
              " that is not part of an ellipsis, of which each operand may have one.");
        has_ellipsis = true;
        i += 2;
      } else {
        (has_ellipsis ? after : before).push_back(label_of(text[i], start + i));
      }
    }
  }

  int64_t count() const { return int64_t(before.size() + after.size()); }
  Labels expanded(int64_t ellipsis_dims) const {
    Labels labels = before;
    for (int64_t d = ellipsis_dims; d-- > 0;) labels.push_back(kLetters + d);
    for (int64_t label : after) labels.push_back(label);
    return labels;
  }
};

// A tensor whose dims have labels, all different.
struct Term {
  Tensor tensor;
  Labels labels;

  int64_t dim_of(int64_t label) const {
    return std::find(labels.begin(), labels.end(), label) - labels.begin();
  }
  int64_t size_of(int64_t label) const { return tensor.size(dim_of(label)); }
};

class Einsum {
 public:
  Einsum(std::string_view equation, TensorList operands) {
    size_t arrow = equation.find("->");
    read_operands(equation.substr(0, arrow), operands);
    find_sizes();
    if (arrow == equation.npos) choose_output();
    else read_output(equation.substr(arrow + 2), arrow + 2);
  }

  // Contracts two terms after the other: those that `path` has at 2 * step and 2 * step + 1 among
  // the terms that are left, of which the last is the result of the step before; or without a path
  // the pair that leaves the least to hold.
  Tensor evaluate(const std::optional<ShapeRef>& path) {
    for (Term& term : terms_) simplify(term);
    uses_.resize(sizes_.size());
    for (const Term& term : terms_)
      for (int64_t label : term.labels) ++uses_[size_t(label)];
    for (int64_t label : output_) ++uses_[size_t(label)];
    CHECK(!path || path->size() == 2 * (terms_.size() - 1), "the path must name ",
          2 * (terms_.size() - 1), " operands, two for each step, but names ", path->size());
    for (size_t step = 0; terms_.size() > 1; ++step) {
      auto [i, j] = path ? named_pair(*path, step) : smallest_pair();
      Term right = take(std::max(i, j)), left = take(std::min(i, j));
      if (i > j) std::swap(left, right);
      bool had_one_dtype = left.tensor.dtype() == right.tensor.dtype();
      left = summed(left, right.labels);
      right = summed(right, left.labels);
      if (had_one_dtype) promote_both(left, right);
      terms_.push_back(contracted(left, right));
      for (int64_t label : terms_.back().labels) ++uses_[size_t(label)];
    }
    return arranged(summed(take(0), {}), output_);
  }

 private:
  void read_operands(std::string_view inputs, TensorList operands) {
    size_t start = 0;
    for (size_t i = 0;; ++i) {
      size_t comma = inputs.find(',', start);
      CHECK(i < operands.size(), "fewer operands were provided than specified in the equation");
      const Tensor& tensor = operands[i];
      CHECK(tensor.defined(), ErrorKind::kType, "operand ", i, " is None, not a Tensor");
      Subscripts subscripts(inputs.substr(start, comma - start), start);
      int64_t rest = tensor.dim() - subscripts.count();
      CHECK(rest == 0 || (rest > 0 && subscripts.has_ellipsis), "the number of subscripts in the ",
            "equation (", subscripts.count(), ") does not match the number of dimensions (",
            tensor.dim(), ") for operand ", i,
            subscripts.has_ellipsis ? "." : " and no ellipsis was given.");
      ellipsis_dims_ = std::max(ellipsis_dims_, subscripts.has_ellipsis ? rest : 0);
      terms_.push_back({tensor, subscripts.expanded(subscripts.has_ellipsis ? rest : 0)});
      if (comma == inputs.npos) break;
      start = comma + 1;
    }
    CHECK(terms_.size() == operands.size(),
          "more operands were provided than specified in the equation");
  }

  // A label of size 1 in one operand broadcasts to its size in the others.
  void find_sizes() {
    sizes_.resize(size_t(kLetters + ellipsis_dims_), -1);
    for (size_t i = 0; i < terms_.size(); ++i)
      for (size_t d = 0; d < terms_[i].labels.size(); ++d) {
        int64_t& known = sizes_[size_t(terms_[i].labels[d])];
        int64_t size = terms_[i].tensor.sizes()[d];
        CHECK(known < 0 || known == size || known == 1 || size == 1, "subscript ",
              label_text(terms_[i].labels[d]), " has size ", size, " for operand ", i,
              " which does not broadcast with previously seen size ", known);
        if (known < 0 || known == 1) known = size;
      }
  }

  // Without an arrow: the ellipsis, then the letters that appear once.
  void choose_output() {
    for (int64_t d = ellipsis_dims_; d-- > 0;) output_.push_back(kLetters + d);
    for (int64_t label = 0; label < kLetters; ++label) {
      int64_t uses = 0;
      for (const Term& term : terms_)
        uses += std::count(term.labels.begin(), term.labels.end(), label);
      if (uses == 1) output_.push_back(label);
    }
  }

  void read_output(std::string_view text, size_t start) {
    Subscripts subscripts(text, start);
    output_ = subscripts.expanded(subscripts.has_ellipsis ? ellipsis_dims_ : 0);
    for (int64_t label : output_) {
      CHECK(sizes_[size_t(label)] >= 0, "output subscript ", label_text(label),
            " does not appear in the equation for any input operand");
      CHECK(std::count(output_.begin(), output_.end(), label) == 1, "output subscript ",
            label_text(label), " appears more than once in the output");
    }
  }

  // Takes the diagonal of repeated labels and drops dims of size 1 that broadcast, or that are
  // summed in a product.
  void simplify(Term& term) {
    bool is_single = terms_.size() == 1;
    for (size_t d = 0; d < term.labels.size(); ++d)
      if (int64_t label = term.labels[d];
          term.tensor.sizes()[d] == 1 &&
          (sizes_[size_t(label)] != 1 || !(is_single || contains(output_, label)))) {
        term.tensor = squeeze(term.tensor, int64_t(d));
        term.labels.erase(d--);
      }
    for (size_t d = 0; d < term.labels.size(); ++d)
      for (size_t e = d + 1; e < term.labels.size(); ++e)
        if (term.labels[d] == term.labels[e]) {
          int64_t label = term.labels[d];
          term.tensor = call<"diagonal", Tensor>(term.tensor, int64_t(0), int64_t(d), int64_t(e));
          term.labels.erase(e);
          term.labels.erase(d--);
          term.labels.push_back(label);
          break;
        }
  }

  // Takes a term out; its labels are not in use any more.
  Term take(size_t i) {
    Term term = std::move(terms_[i]);
    terms_.erase(terms_.begin() + std::ptrdiff_t(i));
    for (int64_t label : term.labels) --uses_[size_t(label)];
    return term;
  }

  std::pair<size_t, size_t> named_pair(ShapeRef path, size_t step) const {
    int64_t i = path[2 * step], j = path[2 * step + 1], count = int64_t(terms_.size());
    CHECK(i >= 0 && i < count && j >= 0 && j < count && i != j, "the path names operands ", i,
          " and ", j, " in step ", step, ", which has ", count, " operands");
    return {size_t(i), size_t(j)};
  }

  // The pair whose product is the smallest, compared with what it replaces; the first of several.
  std::pair<size_t, size_t> smallest_pair() const {
    std::pair<size_t, size_t> best{0, 1};
    double least = 0;
    for (size_t i = 0; i < terms_.size(); ++i)
      for (size_t j = i + 1; j < terms_.size(); ++j) {
        double growth = size_after(terms_[i], terms_[j]) - size_of(terms_[i]) - size_of(terms_[j]);
        if ((i == 0 && j == 1) || growth < least) {
          least = growth;
          best = {i, j};
        }
      }
    return best;
  }
  static double size_of(const Term& term) { return double(term.tensor.numel()); }
  double size_after(const Term& a, const Term& b) const {
    double size = 1;
    auto count_labels = [&](const Term& term, const Term& other, bool shared) {
      for (int64_t label : term.labels) {
        bool both = contains(other.labels, label);
        if (uses_[size_t(label)] > 1 + int64_t(both) && (shared || !both))
          size *= double(term.size_of(label));
      }
    };
    count_labels(a, b, true);
    count_labels(b, a, false);
    return size;
  }

  // Sums over the labels that nothing else needs and that `other` does not have. Small integers
  // widen here, as in sum, but stay so in products.
  Term summed(const Term& term, const Labels& other) const {
    Shape dims;
    Labels kept;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      int64_t label = term.labels[d];
      if (uses_[size_t(label)] > 0 || contains(other, label)) kept.push_back(label);
      else dims.push_back(int64_t(d));
    }
    if (dims.empty()) return term;
    return {sum(term.tensor, dims), kept};
  }

  static void promote_both(Term& left, Term& right) {
    DType dtype = promote(left.tensor.dtype(), right.tensor.dtype());
    for (Term* term : {&left, &right}) term->tensor = cast(term->tensor, dtype);
  }

  // The product of two terms, summed over the labels that nothing else needs.
  Term contracted(const Term& left, const Term& right) const {
    Labels batch, ending, left_only, right_only;
    for (int64_t label : left.labels)
      (!contains(right.labels, label) ? left_only
       : uses_[size_t(label)] > 0     ? batch
                                      : ending)
          .push_back(label);
    for (int64_t label : right.labels)
      if (!contains(left.labels, label)) right_only.push_back(label);

    Labels result_labels = joined({batch, left_only, right_only});
    if (ending.empty()) {
      Labels order = as_in_output(result_labels);
      return {with_all(left, order) * with_all(right, order), order};
    }
    Tensor product = matmul(with_groups(left, batch, left_only, ending),
                            with_groups(right, batch, ending, right_only));
    return {reshape(product, sizes_of({&left, &right}, result_labels)), result_labels};
  }

  // The labels in the order of the output. A product lies in memory as terms arranged so do.
  Labels as_in_output(const Labels& labels) const {
    Labels order;
    for (int64_t label : output_)
      if (contains(labels, label)) order.push_back(label);
    for (int64_t label : labels)
      if (!contains(output_, label)) order.push_back(label);
    return order;
  }

  // The term with a dim for each label, of size 1 where it has none.
  static Tensor with_all(const Term& term, const Labels& labels) {
    Labels own;
    for (int64_t label : labels)
      if (contains(term.labels, label)) own.push_back(label);
    Tensor tensor = arranged(term, own);
    for (size_t d = 0; d < labels.size(); ++d)
      if (!contains(term.labels, labels[d])) tensor = unsqueeze(tensor, int64_t(d));
    return tensor;
  }

  static Labels joined(std::initializer_list<Labels> groups) {
    Labels all;
    for (const Labels& group : groups)
      for (int64_t label : group) all.push_back(label);
    return all;
  }

  static Shape sizes_of(std::initializer_list<const Term*> terms, const Labels& labels) {
    Shape sizes;
    for (int64_t label : labels)
      for (const Term* term : terms)
        if (contains(term->labels, label)) {
          sizes.push_back(term->size_of(label));
          break;
        }
    return sizes;
  }

  // A term as a batch of matrices: the dims of `rows` and of `columns` are each joined into one.
  static Tensor with_groups(const Term& term, const Labels& batch, const Labels& rows,
                            const Labels& columns) {
    Tensor tensor = arranged(term, joined({batch, rows, columns}));
    Shape sizes = sizes_of({&term}, batch);
    sizes.push_back(checked_numel(sizes_of({&term}, rows)));
    sizes.push_back(checked_numel(sizes_of({&term}, columns)));
    return reshape(tensor, sizes);
  }

  // The tensor with its dims in this order.
  static Tensor arranged(const Term& term, const Labels& order) {
    if (term.labels == order) return term.tensor;
    Shape dims;
    for (int64_t label : order) dims.push_back(term.dim_of(label));
    return permute(term.tensor, dims);
  }

  std::vector<Term> terms_;
  Labels output_;
  int64_t ellipsis_dims_ = 0;
  Shape sizes_;                // by label; -1 where it does not appear
  std::vector<int64_t> uses_;  // by label: how many terms have it, and the output
};

}  // namespace

OP(einsum, "(str equation, Tensor[] operands, int[]? path=None) -> Tensor", {
  .home    = "private",
  .doc     = R"(The sums of products of the operands' elements that an equation describes.

path names two operands for each step, among those left; the result of a step comes last.)",
  .forward = [](std::string_view equation, TensorList operands, std::optional<ShapeRef> path) {
    CHECK(!operands.empty(), ErrorKind::kValue, "at least one operand is needed.");
    return Einsum(equation, operands).evaluate(path);
  },
})

}  // namespace rushlight
