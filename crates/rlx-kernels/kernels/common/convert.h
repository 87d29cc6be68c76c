// Conversions between dtypes, as `cast` means them.

inline char lowest_of(char) { return -128; }
inline char highest_of(char) { return 127; }
inline short lowest_of(short) { return -32768; }
inline short highest_of(short) { return 32767; }
inline int lowest_of(int) { return -2147483647 - 1; }
inline int highest_of(int) { return 2147483647; }
inline long lowest_of(long) { return -9223372036854775807L - 1L; }
inline long highest_of(long) { return 9223372036854775807L; }
inline uchar lowest_of(uchar) { return 0; }
inline uchar highest_of(uchar) { return 255; }
inline uint lowest_of(uint) { return 0u; }
inline uint highest_of(uint) { return 4294967295u; }

// Floats are looked at as float, all others as long, which holds each of them.
inline float widen(half v) { return float(v); }
inline float widen(float v) { return v; }
inline long widen(bool v) { return v ? 1L : 0L; }
inline long widen(char v) { return long(v); }
inline long widen(short v) { return long(v); }
inline long widen(int v) { return long(v); }
inline long widen(long v) { return v; }
inline long widen(uchar v) { return long(v); }
inline long widen(uint v) { return long(v); }

inline void narrow(float v, thread half& to) { to = half(v); }
inline void narrow(float v, thread float& to) { to = v; }
// NaN is not 0.
inline void narrow(float v, thread bool& to) { to = v != 0.0f; }
// Toward zero, saturating; NaN gives 0. The highest value of a wide type rounds up to a power of two in float, which no
// float below it exceeds.
template <typename I>
inline void narrow(float v, thread I& to) {
  if (v != v) {
    to = I(0);
  } else if (v <= float(lowest_of(I(0)))) {
    to = lowest_of(I(0));
  } else if (v >= float(highest_of(I(0)))) {
    to = highest_of(I(0));
  } else {
    to = I(v);
  }
}

// An integer that float rounds is too large for half to begin with, so rounding twice does no harm.
inline void narrow(long v, thread half& to) { to = half(float(v)); }
inline void narrow(long v, thread float& to) { to = float(v); }
inline void narrow(long v, thread bool& to) { to = v != 0; }
// The low bits.
template <typename I>
inline void narrow(long v, thread I& to) {
  to = I(v);
}

template <typename To, typename From>
inline To convert(From v) {
  To to;
  narrow(widen(v), to);
  return to;
}

// A float that has the precision of half, for values that a region keeps in float.
inline float round_to_half(float v) { return float(half(v)); }
