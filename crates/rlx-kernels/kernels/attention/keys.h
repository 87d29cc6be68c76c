// Which keys a query sees, where they lie, and how a product becomes a score: what the attention kernels share. Keys and
// values lie beside the queries, token by token, or PAGED, in pages of state.

// The score of a key that is hidden: it weighs nothing, while the lowest finite score, which masks may have for a bias, does.
#define ATTENTION_HIDDEN (-INFINITY)

// What the largest score begins with: finite, so that no difference of scores is one of infinities.
#define ATTENTION_LOWEST (-3.402823466e+38f)

// Whether a value is infinite or NaN. Sums leave such values out, since a weight of 0 times one of them is NaN: it would
// reach queries that do not see it, or that hardly see it. They are added afterwards.
inline bool attention_is_strange(float value) { return !(fabs(value) <= 3.402823466e+38f); }

// The keys of a query, as far as positions say: those from `low` to before `high`. They are counted by token, or PAGED, by
// position in the sequence.
struct AttentionKeys {
  uint sequence;
  uint first;  // the sequence's first key
  uint low;
  uint high;
};

// The operand of the mask kinds `custom` and `bias`: at most one is there.
struct AttentionMask {
  device const bool* custom;
  device const float* bias_f32;
  device const half* bias_f16;
};

// Where keys and values lie; PAGED alone has lengths and a table.
template <typename S>
struct AttentionSource {
  device const S* k;
  device const S* v;
  device const int* starts;
  device const int* lengths;
  device const int* table;
};

// The keys of the query at `token`; none where it belongs to no sequence. Starts and lengths that do not fit are an error
// of the caller; they must not become reads outside of an operand.
template <bool PAGED>
inline AttentionKeys attention_keys(device const AttentionArgs* args, device const int* starts, device const int* lengths,
                                    uint token) {
  AttentionKeys keys = {0u, 0u, 0u, 0u};
  uint tokens = args->tokens;
  if (token >= tokens) return keys;
  // How many sequences begin at or before the token.
  uint begun = 0;
  uint end = args->sequences;
  while (begun < end) {
    uint middle = begun + (end - begun) / 2;
    if (starts[middle] <= int(token)) {
      begun = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begun == 0 || starts[begun] <= int(token)) return keys;
  uint limit = min(uint(starts[begun]), tokens);
  uint query = token;
  keys.sequence = begun - 1;
  keys.first = uint(max(starts[begun - 1], 0));
  if (PAGED) {
    // The new tokens are the last ones of the sequence.
    uint behind = limit - token;
    uint capacity = args->pages == 0u ? 0u : args->pages_each * args->page_len;
    limit = min(uint(max(lengths[begun - 1], 0)), capacity);
    if (limit < behind) return keys;
    query = limit - behind;
    keys.first = 0;
  }
  keys.low = query - keys.first > args->before ? query - args->before : keys.first;
  keys.high = limit - 1 - query > args->after ? query + args->after + 1 : limit;
  if (args->mask_kind != 0u) keys.high = min(keys.high, keys.first + min(args->mask_width, tokens));
  return keys;
}

// Which row of keys and values a key has.
template <bool PAGED>
inline uint attention_row(device const AttentionArgs* args, device const int* table, uint sequence, uint key) {
  if (!PAGED) return key;
  uint page = uint(max(table[sequence * args->pages_each + key / args->page_len], 0));
  return min(page, args->pages - 1) * args->page_len + key % args->page_len;
}

// Where the mask operand holds what concerns the query's first key.
inline ulong attention_mask_row(device const AttentionArgs* args, uint token, uint head) {
  return ulong(head) * args->mask_head + ulong(token) * args->mask_row;
}

// Whether the mask operand shows a key: `bias` is what it adds to the score. All threads of a dispatch take the same way.
inline bool attention_shown(device const AttentionArgs* args, AttentionMask mask, ulong at, thread float& bias) {
  bias = 0.0f;
  switch (args->mask_kind) {
    case 1: return mask.custom[at];
    case 2: bias = mask.bias_f32[at]; break;
    case 3: bias = float(mask.bias_f16[at]); break;
    default: return true;
  }
  return bias != -INFINITY;
}

// The score of a key whose product with the query is `product`.
inline float attention_score(device const AttentionArgs* args, AttentionMask mask, ulong at, float product) {
  float bias;
  if (!attention_shown(args, mask, at, bias)) return ATTENTION_HIDDEN;
  float score = product * args->scale;
  float cap = args->softcap;
  if (cap > 0.0f) score = cap * tanh(score / cap);
  return score + bias;
}

// The factor of a value. NaN stays: it comes from a key that is seen.
inline float attention_weight(float score, float most) {
  return score == ATTENTION_HIDDEN ? 0.0f : exp(score - most);
}

// The sum of the strange values in a column that a query sees.
template <typename S, bool PAGED>
inline float attention_strange(device const AttentionArgs* args, device const int* table, AttentionMask mask,
                               ulong mask_row, AttentionKeys keys, device const S* column) {
  float sum = 0.0f;
  for (uint key = keys.low; key < keys.high; key++) {
    float x = float(column[ulong(attention_row<PAGED>(args, table, keys.sequence, key)) * args->v_token]);
    float bias;
    if (attention_is_strange(x) && attention_shown(args, mask, mask_row + (key - keys.first), bias)) sum += x;
  }
  return sum;
}
