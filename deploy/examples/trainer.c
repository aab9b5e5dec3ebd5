/* The trainer of trainer.cc, with the C interface.
 *
 * usage: trainer SOCKET JOB RANK WORLD_SIZE VERSIONS */
#include <stdio.h>
#include <stdlib.h>

#include "weightbridge/weightbridge.h"

static int fail(void) {
  fprintf(stderr, "trainer: %s: %s\n", wb_status_name(wb_last_error_code()),
          wb_last_error_message());
  for (size_t i = 0; i < wb_last_error_detail_count(); ++i) {
    fprintf(stderr, "  %s\n", wb_last_error_detail(i));
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fputs("usage: trainer SOCKET JOB RANK WORLD_SIZE VERSIONS\n", stderr);
    return 3;
  }
  const int32_t rank = atoi(argv[3]);
  const int32_t ranks = atoi(argv[4]);
  const int64_t first = 8 * rank / ranks; /* rows [first, end) of w are here */
  const int64_t end = 8 * (rank + 1) / ranks;
  const int64_t elements = (end - first) * 1024;
  const int64_t whole[2] = {8, 1024};
  const int64_t local[2] = {end - first, 1024};
  const int64_t lo[2] = {first, 0};
  const int64_t hi[2] = {end, 1024};

  /* Memory that the daemon can open, and what lies in it. What is not named here is 0: the
   * default. */
  const wb_tensor tensor = {
      .struct_size = sizeof(tensor), .name = "w", .dtype = WB_FP32, .ndim = 2, .shape = whole};
  const wb_param param = {.struct_size = sizeof(param), .name = "w", .ndim = 2, .shape = local};
  const wb_piece piece = {
      .struct_size = sizeof(piece), .tensor = "w", .ndim = 2, .lo = lo, .hi = hi};
  wb_shared_buffer* memory = NULL;
  wb_layout* layout = NULL;
  uint32_t index = 0;
  if (wb_shared_buffer_create((uint64_t)elements * sizeof(float), &memory) ||
      wb_layout_create(&layout) || wb_layout_add_tensor(layout, &tensor) ||
      wb_layout_add_param(layout, &param, &index) || wb_layout_add_piece(layout, index, &piece) ||
      wb_layout_set_shared_buffer(layout, "w", memory)) {
    return fail();
  }

  const wb_join_options options = {.struct_size = sizeof(options),
                                   .socket = argv[1],
                                   .job = argv[2],
                                   .group = "policy",
                                   .rank = &rank,
                                   .world_size = ranks};
  wb_session* session = NULL;
  if (wb_join_trainer(&options, layout, &session)) return fail();
  wb_layout_destroy(layout);

  const uint64_t versions = strtoull(argv[5], NULL, 10);
  for (uint64_t version = 1; version <= versions; ++version) {
    float* w = wb_shared_buffer_data(memory); /* a training step writes the weights */
    for (int64_t i = 0; i < elements; ++i) w[i] = (float)(first * 1024 + i + (int64_t)version);
    wb_publish_report report = {.struct_size = sizeof(report)};
    if (wb_publish(session, version, NULL, &report)) return fail();
    printf("version %llu: %llu bytes sent in %.1f ms\n", (unsigned long long)version,
           (unsigned long long)report.bytes_sent, report.total_seconds * 1e3);
  }
  wb_session_destroy(session);
  wb_shared_buffer_destroy(memory);
  return 0;
}
