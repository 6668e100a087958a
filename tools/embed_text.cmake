# Writes OUTPUT, a C++ file that holds the device text INPUT as a string. PATH is the text's path from
# the root, by which other texts include it; see core/device/kernel_text.h.
cmake_path(GET INPUT FILENAME name)
string(MAKE_C_IDENTIFIER ${name} name)
file(READ ${INPUT} text)
file(WRITE ${OUTPUT}
"// Made from ${PATH} by tools/embed_text.cmake.
#include \"core/device/kernel_text.h\"

namespace rushlight {

extern const char* const ${name};
const char* const ${name} = R\"device_text(${text})device_text\";
static const KernelText embedded(\"${PATH}\", ${name});

}  // namespace rushlight
")
