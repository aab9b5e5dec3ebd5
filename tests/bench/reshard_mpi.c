/* What Open MPI comes to with the reshard of scripts/bench transfer: ranks 0 and 1 hold the upper
 * and the lower half of each tensor's rows, ranks 2 and 3 get the left and the right half of its
 * columns. The senders cut their parts by subarray datatypes; all messages of an update are in
 * flight at once. Prints seconds per update, the slowest rank's, a line each.
 *
 * usage: mpirun -n 4 reshard_mpi TENSORS SIDE UPDATES   (square tensors of 2-byte elements)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kHalves = 2, kRanks = 4, kMaxTensors = 64 };

static MPI_Request requests[kHalves * kMaxTensors];

/* Of a matrix of `rows` x `columns`, `part_rows` x `part_columns` from the given place on. */
static MPI_Datatype Part(const int whole[2], const int part[2], const int from[2]) {
  MPI_Datatype type;
  MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, MPI_INT16_T, &type);
  MPI_Type_commit(&type);
  return type;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int tensors = argc == 4 ? atoi(argv[1]) : 0;
  const int side = argc == 4 ? atoi(argv[2]) : 0;
  const int updates = argc == 4 ? atoi(argv[3]) : 0;
  if (ranks != kRanks || tensors < 1 || tensors > kMaxTensors || side < 2)
    MPI_Abort(MPI_COMM_WORLD, 3);

  const int sends = rank < kHalves;
  const int half = side / 2;
  const int whole[2] = {sends ? half : side, sends ? side : half};
  const int part[2] = {half, half};
  MPI_Datatype parts[kHalves];
  for (int i = 0; i < kHalves; ++i) {
    const int from[2] = {sends ? 0 : i * half, sends ? i * half : 0};
    parts[i] = Part(whole, part, from);
  }
  const size_t elements = (size_t)half * (size_t)side;
  short* const memory = malloc(elements * sizeof(short) * (size_t)tensors);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(memory, 1, elements * sizeof(short) * (size_t)tensors);

  for (int update = 0; update < updates; ++update) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    int count = 0;
    for (int tensor = 0; tensor < tensors; ++tensor) {
      short* const at = memory + elements * (size_t)tensor;
      for (int i = 0; i < kHalves; ++i, ++count) {
        if (sends) {
          MPI_Isend(at, 1, parts[i], kHalves + i, tensor, MPI_COMM_WORLD, &requests[count]);
        } else {
          MPI_Irecv(at, 1, parts[i], i, tensor, MPI_COMM_WORLD, &requests[count]);
        }
      }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    const double own = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.6f\n", slowest);
  }
  free(memory);
  MPI_Finalize();
  return 0;
}
