// As in PyTorch, everything for an extension.
#pragma once

#include <rushlight/extension.h>
