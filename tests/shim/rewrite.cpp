// Owns a scanner of C++ that knows just enough for kernels: strings, comments, directives, braces.
#include "tests/shim/rewrite.h"

#include <cctype>
#include <string_view>

namespace shim {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Token {
  size_t begin, end;
  std::string_view text;
};

// Spaces and comments are between tokens; a string and a directive are one token each.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool next(Token& token) {
    skip_space();
    if (at_ >= text_.size()) return false;
    size_t begin = at_;
    if (text_[at_] == '#' && starts_line_) {
      skip_directive();
    } else if (text_.substr(at_, 3) == "R\"(") {
      at_ = after(text_.find(")\"", at_), 2);
    } else if (text_[at_] == '"' || text_[at_] == '\'') {
      skip_quoted(text_[at_]);
    } else if (is_word(text_[at_])) {
      bool is_number = std::isdigit(static_cast<unsigned char>(text_[at_]));  // maybe 1'000
      while (at_ < text_.size() && (is_word(text_[at_]) || (is_number && text_[at_] == '\''))) {
        ++at_;
      }
    } else {
      ++at_;
    }
    starts_line_ = false;
    token = {begin, at_, text_.substr(begin, at_ - begin)};
    return true;
  }

 private:
  size_t after(size_t found, size_t length) const {
    return found == std::string_view::npos ? text_.size() : found + length;
  }
  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') starts_line_ = true;
      if (text_.substr(at_, 2) == "//") {
        at_ = after(text_.find('\n', at_), 0);
      } else if (text_.substr(at_, 2) == "/*") {
        at_ = after(text_.find("*/", at_), 2);
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  void skip_directive() {
    do {
      at_ = after(text_.find('\n', at_ + 1), 0);
    } while (at_ < text_.size() && text_[at_ - 1] == '\\');
  }
  void skip_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
  bool starts_line_ = true;
};

std::string entry(const std::string& symbol, const std::string& kernel, const std::string& limit) {
  return " extern \"C\" { ShimKernel shim_kernel_" + symbol + " = shim_kernel<" + kernel + ">(" +
         limit + "); }";
}

class Rewriter {
 public:
  explicit Rewriter(const std::string& text) : text_(text) {
    Scanner scanner(text_);
    for (Token token; scanner.next(token);) tokens_.push_back(token);
  }

  std::string run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is(i, "__global__")) {
        i = kernel(i);
      } else if (is(i, "{") && i >= function_end_ && is(i - 1, ")")) {
        function_end_ = after_brackets(i, "{", "}");
      } else if (is(i, "extern") && is(i + 1, "__shared__") && i < function_end_) {
        i = dynamic_shared(i);
      }
      if (i + 1 == function_end_ && !entry_.empty()) {
        insert_after(i, entry_);
        entry_.clear();
      }
    }
    result_ += text_.substr(copied_);
    return std::move(result_);
  }

 private:
  bool is(size_t i, std::string_view word) const {
    return i < tokens_.size() && tokens_[i].text == word;
  }
  std::string between(size_t from, size_t to) const {  // the tokens from, ..., to - 1
    return from < to ? text_.substr(tokens_[from].begin, tokens_[to - 1].end - tokens_[from].begin)
                     : "";
  }
  // Lines must stay, so of what is taken out the line ends remain.
  void replace(size_t from, size_t to, const std::string& replacement) {
    result_ += text_.substr(copied_, tokens_[from].begin - copied_) + replacement;
    for (char c : between(from, to)) {
      if (c == '\n') result_ += c;
    }
    copied_ = tokens_[to - 1].end;
  }
  void insert_after(size_t i, const std::string& addition) {
    result_ += text_.substr(copied_, tokens_[i].end - copied_) + addition;
    copied_ = tokens_[i].end;
  }
  // The index after the bracket that closes the one at i.
  size_t after_brackets(size_t i, std::string_view open, std::string_view close) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      depth += is(i, open) - is(i, close);
      if (depth == 0) return i + 1;
    }
    return i;
  }
  bool is_extern_c(size_t global) const {
    for (size_t i = global; i-- > 0;) {
      if (is(i, ";") || is(i, "}") || is(i, "{") || tokens_[i].text[0] == '#') return false;
      if (is(i, "\"C\"")) return true;
    }
    return false;
  }

  // From __global__ to the opening brace, which it returns.
  size_t kernel(size_t i) {
    bool extern_c = is_extern_c(i);
    // With more threads, a kernel without bounds may want more registers than there are.
    std::string limit = "256";
    size_t name = 0;
    replace(i, i + 1, "");
    for (++i; i < tokens_.size() && !is(i, "{") && !is(i, ";"); ++i) {
      if (is(i, "__launch_bounds__")) {
        size_t end = after_brackets(i + 1, "(", ")"), comma = i + 2;
        while (comma < end - 1 && !is(comma, ",")) {
          comma = is(comma, "(") ? after_brackets(comma, "(", ")") : comma + 1;
        }
        limit = between(i + 2, comma);
        replace(i, end, "");
        i = end - 1;
      } else if (is(i, "(")) {
        if (name == 0) name = i - 1;
        i = after_brackets(i, "(", ")") - 1;
      }
    }
    if (!is(i, "{")) return i;
    function_end_ = after_brackets(i, "{", "}");
    if (extern_c && name) {
      std::string symbol(tokens_[name].text);
      entry_ = entry(symbol, symbol, limit);
    }
    return i;
  }

  // From extern to the semicolon, which it returns.
  size_t dynamic_shared(size_t i) {
    size_t type = i + 2, end = i;
    // Alignment is about the array; the memory is aligned to 16 bytes anyway.
    while (is(type, "__align__") || is(type, "alignas")) type = after_brackets(type + 1, "(", ")");
    while (end < tokens_.size() && !is(end, ";")) ++end;
    size_t name = end;
    while (name > type + 1 && !is(name, "[")) --name;
    --name;
    std::string variable = between(name, name + 1), element = "ShimElement_" + variable;
    replace(i, end,
            "using " + element + " = " + between(type, name) + "; " + element + " (&" + variable +
                ")[] = *reinterpret_cast<" + element + " (*)[]>(shim_registers.dynamic_shared)");
    return end;
  }

  const std::string& text_;
  std::vector<Token> tokens_;
  std::string result_;
  size_t copied_ = 0;
  size_t function_end_ = 0;  // the index after the brace that ends the function around
  std::string entry_;        // to be added there
};

}  // namespace

bool needs_preprocessing(const std::string& text) {
  Scanner scanner(text);
  for (Token token; scanner.next(token);) {
    if (token.text[0] != '#') continue;
    for (const char* word : {"__global__", "__shared__", "__launch_bounds__"}) {
      if (token.text.find(word) != std::string_view::npos) return true;
    }
  }
  return false;
}

std::string lowered_name(size_t expression) {
  return "name_expression_" + std::to_string(expression);
}

std::string rewrite(const std::string& text, const std::vector<std::string>& name_expressions) {
  std::string result = Rewriter(text).run();
  for (size_t i = 0; i < name_expressions.size(); ++i) {
    std::string kernel = name_expressions[i];
    if (kernel.starts_with('&')) kernel.erase(0, 1);
    result += "\n" + entry(lowered_name(i), "(" + kernel + ")", "256") + " extern \"C\" void " +
              lowered_name(i) + "() {}";
  }
  return result;
}

}  // namespace shim
