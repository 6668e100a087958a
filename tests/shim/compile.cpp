// Owns the compiler's command line, its processes and its temporary folder.
#include "tests/shim/compile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/shim/races.h"
#include "tests/shim/rewrite.h"

extern char** environ;

namespace shim {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const fs::path kPreludeFolder = RUSHLIGHT_SHIM_FOLDER;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "rushlight-shim-XXXXXX").string();
    if (mkdtemp(name.data())) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
  fs::path path;
};

// True if the program ends well; what it says goes to the file. It works in the folder, so that the
// names it sees, and with them what ccache compares, are the same for every folder.
bool run(const Strings& command, const fs::path& folder, const fs::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child;
  int failed = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if (failed) {
    write_file(output, "error: " + command[0] + " could not be started\n");
    return false;
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Strings compiler() {
  const char* chosen = std::getenv("CXX");
  std::istringstream words(chosen && *chosen ? chosen : "c++");
  Strings command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

Strings operator+(Strings first, const Strings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// As NVRTC, the compiler sees no header but those that the program brings. Traps catch vectors that
// are loaded from unaligned addresses, and indices outside of shared and local arrays.
const Strings kLanguage = {"-x",
                           "c++",
                           "-w",
                           "-fdiagnostics-color=never",
                           "-nostdinc",
                           "-nostdinc++",
                           "-Iinclude",
                           "-DRUSHLIGHT_SHIM=1",
                           "-D__CUDACC__=1",
                           "-D__CUDACC_RTC__=1",
                           "-D__CUDA_ARCH__=900"};
const Strings kCode = {"-O1", "-fPIC", "-fwrapv", "-fno-math-errno", "-ffp-contract=off",
                       "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables",
                       "-fno-stack-protector", "-fsanitize=alignment,bounds",
                       "-fsanitize-undefined-trap-on-error",
                       // Else templates' variables would be shared by all modules of the process.
                       "-fno-gnu-unique"};
// Calls before each access. Without knowledge of what points where, none is left out.
const Strings kWatched = {"-fsanitize=thread", "-fno-tree-pta", "-DRUSHLIGHT_SHIM_RACES=1"};
// A kernel may have the name of a function in the C library.
const Strings kLink = {"-shared", "-nostdlib", "-Wl,-Bsymbolic,-z,defs"};
const Strings kLibraries = {"-lm", "-lc", "-lgcc"};

std::string nvrtc_form(const std::string& log) {
  static const std::regex position(
      R"((^|\n)([^\n:]+):(\d+):(?:\d+:)?( (?:fatal )?(?:error|warning|note):))");
  return std::regex_replace(log, position, "$1$2($3):$4");
}

}  // namespace

bool translate_options(const Strings& options, Program& program) {
  static const std::regex define(R"((?:-D|--define-macro=)(\w+)(?:=(.*))?)");
  static const std::regex standard(R"(--?std=(c\+\+(?:11|14|17|20)))");
  static const std::regex ignored(
      R"((-arch|--gpu-architecture)=(sm|compute)_\d+[af]?|)"
      R"(--?(ftz|prec-sqrt|prec-div|fmad|maxrregcount|relocatable-device-code|rdc)=\w+|)"
      R"(--?(use_fast_math|extra-device-vectorization|restrict|device-debug|G|lineinfo|w|)"
      R"(generate-line-info|default-device|device-as-default-execution-space|disable-warnings|)"
      R"(minimal|no-source-include|device-int128|dlto|no-cache|split-compile=\d+|)"
      R"(diag-(suppress|warn|error)=.+))");
  program.standard = "c++17";
  for (const std::string& option : options) {
    if (std::smatch found; std::regex_match(option, found, define)) {
      program.defines += "#define " + found.str(1) + " " +
                         (found[2].matched ? found.str(2) : std::string("1")) + "\n";
    } else if (std::regex_match(option, found, standard)) {
      program.standard = found.str(1);
    } else if (!std::regex_match(option, ignored)) {
      program.log = "nvrtc: error: unrecognized option " + option + "\n";
      return false;
    }
  }
  return true;
}

bool compile(Program& program) {
  TemporaryFolder folder;
  const fs::path& path = folder.path;
  if (path.empty()) {
    program.log = "error: no temporary folder could be made\n";
    return false;
  }
  // Macros are defined in the text, so that they do not disturb the prelude.
  std::string text = program.defines + "#line 1 \"" + program.name + "\"\n" + program.text;
  bool preprocess = needs_preprocessing(program.text);
  for (const auto& [name, header] : program.headers) {
    write_file(path / "include" / name, header);
    preprocess |= header.find("__global__") != std::string::npos ||
                  header.find("extern __shared__") != std::string::npos;
  }
  Strings language = kLanguage + Strings{"-std=" + program.standard};
  auto succeeded = [&](const Strings& command) {
    bool success = run(command, path, path / "log");
    program.log = nvrtc_form(read_file(path / "log"));
    return success;
  };
  std::string source = "kernel.cpp";
  write_file(path / source, text);
  if (preprocess) {
    if (!succeeded(compiler() + Strings{"-E"} + language + Strings{source, "-o", "kernel.ii"})) {
      return false;
    }
    text = read_file(path / "kernel.ii");
  }
  write_file(path / source, rewrite(text, program.name_expressions));
  language = language + kCode + Strings{"-include", kPreludeFolder / "prelude.h"};
  if (watches_races()) language = language + kWatched;
  if (in_path("ccache")) {  // which keeps objects, not libraries
    Strings command = Strings{"ccache"} + compiler() + language + Strings{"-c", source};
    if (!succeeded(command + Strings{"-o", "kernel.o"})) return false;
    source = "kernel.o";
    language.clear();
  }
  Strings command = compiler() + language + kLink + Strings{source} + kLibraries;
  if (!succeeded(command + Strings{"-o", "kernel.so"})) return false;
  program.binary = read_file(path / "kernel.so");
  return true;
}

unsigned prelude_hash() {
  unsigned hash = watches_races() ? 2166136262 : 2166136261;  // FNV-1a
  for (const char* file : {"abi.h", "prelude.h", "prelude_math.h"}) {
    for (char c : read_file(kPreludeFolder / file))
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  }
  return hash;
}

}  // namespace shim
