#!/bin/sh
# Says in one sentence what this machine lacks to build Rushlight, and how to get it.
# Usage: check_prerequisites.sh PYTHON. Needs nothing but a shell, since it runs before all else.
python=$1
cxx=${CXX:-g++}
missing=""
packages=""

need() {  # need WHAT PACKAGE
  missing="${missing:+$missing and }$1"
  packages="${packages:+$packages }$2"
}

if ! "$python" -c '' 2>/dev/null; then
  need "Python ($python)" "${python##*/} ${python##*/}-venv ${python##*/}-dev"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "make: Python 3.11 or newer is needed, but $python is $("$python" -V 2>&1 | cut -d' ' -f2)." \
    "Install a newer one (apt-get install python3.11 python3.11-venv python3.11-dev)" \
    "and run: make PYTHON=python3.11" >&2
  exit 1
else
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    need "the Python module venv" "${python##*/}-venv"
  "$python" -c 'import os, sysconfig
os.stat(os.path.join(sysconfig.get_paths()["include"], "Python.h"))' 2>/dev/null ||
    need "the Python headers (Python.h)" "${python##*/}-dev"
fi

if ! command -v "$cxx" >/dev/null; then
  need "a C++ compiler ($cxx)" "g++"
elif ! echo 'consteval int one() { return 1; } int main() { return one() - 1; }
             template <class T> struct Box { T value; };
             static_assert(__has_builtin(__builtin_shufflevector) && Box{1}.value);' |
  "$cxx" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
  echo "make: $cxx $("$cxx" -dumpversion) is too old; GCC 12 is the oldest that will do." \
    "Install a newer one (apt-get install g++-12) and run: make CXX=g++-12" >&2
  exit 1
fi

if [ -n "$missing" ]; then
  case $missing in *" and "*) verb=are them=them ;; *s\ \(*) verb=are them=them ;; *) verb=is them=it ;; esac
  echo "make: $missing $verb missing. Install $them with: apt-get install $packages" >&2
  exit 1
fi
