// Owns the way a test runs code in a forked child: a child that hangs or fails ends the test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "core/tests/expect.h"

namespace rushlight {

template <class F>
void expect_child_succeeds(F&& f, std::source_location at = std::source_location::current()) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    f();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, at);
}

}  // namespace rushlight
