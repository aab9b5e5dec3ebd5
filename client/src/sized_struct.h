#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "client/src/errors.h"

namespace wb::client {

/// A caller's option struct as this library knows it: fields that the caller's header did not have
/// are zero. Refused if the caller's header has fields that we do not know and that are not zero.
template <typename T>
[[nodiscard]] Result<T> TakeStruct(const T* given, const std::string& name) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto invalid = [&name](const std::string& why) {
    return Error{WB_INVALID_ARGUMENT, name + ": " + why, {}};
  };
  if (given == nullptr) return invalid("is NULL");
  const std::size_t size = given->struct_size;
  if (size < sizeof(given->struct_size)) {
    return invalid("struct_size is " + std::to_string(size) + ", want sizeof(" + name + ")");
  }
  const char* raw = static_cast<const char*>(static_cast<const void*>(given));
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (raw[i] != 0) {
      return invalid("byte " + std::to_string(i) + " of " + std::to_string(size) +
                     " is set, of which this library (" + wb_library_version() +
                     ") knows the first " + std::to_string(sizeof(T)));
    }
  }
  T taken{};
  std::memcpy(&taken, given, std::min(size, sizeof(T)));
  return taken;
}

/// Fills in as much of the caller's report struct as both sides know. NULL is allowed.
template <typename T>
void GiveStruct(T report, T* wanted) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (wanted == nullptr) return;
  report.struct_size = wanted->struct_size;
  std::memcpy(wanted, &report, std::min(report.struct_size, sizeof(T)));
}

}  // namespace wb::client
