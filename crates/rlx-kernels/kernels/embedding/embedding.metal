// embedding: rows of a table, by id. One thread for each element of the result. An id outside of the table gives NaN:
// the error belongs to whoever can report it.
template <typename T, typename I, typename O>
inline void embedding(device const EmbeddingArgs* args, device const T* table, device const I* ids_of, device O* out,
                      Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index >= args->elems) return;
  uint width = args->width;
  long row = long(ids_of[index / width]);
  bool inside = row >= 0 && row < long(args->rows);
  float v = inside ? float(table[ulong(row) * width + index % width]) * args->scale : NAN;
  out[index] = O(v);
}
