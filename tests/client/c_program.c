/* The C interface as a C11 program uses it: this file has to compile, and its function to work. */
#include <string.h>

#include "weightbridge/weightbridge.h"

int wb_test_c_program(void);

int wb_test_c_program(void) {
  const int64_t shape[2] = {2, 4};
  const int64_t lo[2] = {0, 0};
  const int64_t hi[2] = {2, 4};
  wb_layout* layout = NULL;
  wb_shared_buffer* buffer = NULL;
  uint32_t index = 7;
  wb_tensor tensor;
  wb_param param;
  wb_piece piece;

  memset(&tensor, 0, sizeof(tensor));
  tensor.struct_size = sizeof(tensor);
  tensor.name = "w";
  tensor.dtype = WB_BF16;
  tensor.ndim = 2;
  tensor.shape = shape;
  memset(&param, 0, sizeof(param));
  param.struct_size = sizeof(param);
  param.name = "weight";
  param.ndim = 2;
  param.shape = shape;
  memset(&piece, 0, sizeof(piece));
  piece.struct_size = sizeof(piece);
  piece.tensor = "w";
  piece.ndim = 2;
  piece.lo = lo;
  piece.hi = hi;

  if (wb_layout_create(&layout) != WB_OK) return 1;
  if (wb_layout_add_tensor(layout, &tensor) != WB_OK) return 2;
  if (wb_layout_add_param(layout, &param, &index) != WB_OK || index != 0) return 3;
  if (wb_layout_add_piece(layout, index, &piece) != WB_OK) return 4;
  if (wb_shared_buffer_create(16, &buffer) != WB_OK) return 5;
  memset(wb_shared_buffer_data(buffer), 1, 16);
  if (wb_layout_set_shared_buffer(layout, "weight", buffer) != WB_OK) return 6;
  wb_shared_buffer_destroy(buffer);
  wb_layout_destroy(layout);
  return 0;
}
