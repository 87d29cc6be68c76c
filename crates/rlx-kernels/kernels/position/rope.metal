// rope: one thread for each pair of elements that turn together, or for an element that passes through.
template <typename T>
inline void rope(device const RopeArgs* args, device const T* x, device const int* positions,
                 device const float* inv_freq, device T* out, Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index >= args->units) return;
  uint pairs = args->pairs;
  uint head_dim = args->head_dim;
  uint heads = args->heads;
  uint units_of_head = head_dim - pairs;
  uint unit = index % units_of_head;
  uint row = index / units_of_head;
  uint head = row % heads;
  uint token = row / heads;
  ulong from = ulong(token) * args->x_token + ulong(head) * args->x_head;
  ulong to = ulong(row) * head_dim;
  if (unit >= pairs) {
    uint at = pairs + unit;
    out[to + at] = x[from + at];
    return;
  }
  bool interleaved = args->interleaved != 0u;
  uint first = interleaved ? 2 * unit : unit;
  uint second = interleaved ? first + 1 : unit + pairs;
  float angle = float(positions[token]) * inv_freq[unit];
  float c = cos(angle) * args->scale;
  float s = sin(angle) * args->scale;
  float a = float(x[from + first]);
  float b = float(x[from + second]);
  out[to + first] = T(a * c - b * s);
  out[to + second] = T(b * c + a * s);
}
