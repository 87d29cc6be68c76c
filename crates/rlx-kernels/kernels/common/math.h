// Functions that MSL lacks or has with too little accuracy, in f32.

// NaN wins, whichever side it is on.
inline float max_or_nan(float a, float b) { return (a > b || a != a) ? a : b; }
inline float min_or_nan(float a, float b) { return (a < b || a != a) ? a : b; }

// NaN stays.
inline float relu(float x) { return x < 0.0f ? 0.0f : x; }

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// erf on |x| <= 1: x times a polynomial in x^2, 3 units of roundoff.
inline float erf_near(float x) {
  float z = x * x;
  float p = -9.667043741501402e-06f;
  p = p * z + 0.00011265958892181516f;
  p = p * z - 0.0008484080317430198f;
  p = p * z + 0.005221031606197357f;
  p = p * z - 0.026865430176258087f;
  p = p * z + 0.11283782124519348f;
  p = p * z - 0.37612637877464294f;
  p = p * z + 1.128379225730896f;
  return p * x;
}

// factor * erfc(x) on x >= 1: exp(-x^2) times a polynomial in t = 2 / (2 + x), whose error is 5 units of roundoff up to x = 10,
// where exp gives 0 in f32. The factor comes before exp, so that what is tiny is rounded to zero once, at the end.
inline float erfc_far(float x, float factor) {
  float t = 2.0f / (2.0f + x);
  float p = 0.05771658942103386f;
  p = p * t - 0.3087380528450012f;
  p = p * t + 0.6548510789871216f;
  p = p * t - 0.6522782444953918f;
  p = p * t + 0.28218895196914673f;
  p = p * t - 0.13295064866542816f;
  p = p * t + 0.11709888279438019f;
  p = p * t + 0.17045417428016663f;
  p = p * t + 0.24749809503555298f;
  p = p * t + 0.2820506989955902f;
  p = p * t + 0.28209608793258667f;
  return x > 10.5f ? factor * 0.0f : factor * p * t * exp(-x * x);
}

inline float erf_f32(float x) {
  float a = fabs(x);
  if (a <= 1.0f) return erf_near(x);
  float far = a != a ? a : 1.0f - erfc_far(a, 1.0f);
  return x < 0.0f ? -far : far;
}

inline float erfc_f32(float x) {
  float a = fabs(x);
  if (a != a) return a;
  if (a <= 1.0f) return 1.0f - erf_near(x);
  return x < 0.0f ? 2.0f - erfc_far(a, 1.0f) : erfc_far(a, 1.0f);
}

inline float gelu(float x) {
  float z = -0.70710678118654752f * x;
  return z >= 1.0f ? erfc_far(z, 0.5f * x) : 0.5f * x * erfc_f32(z);
}

// x * sigmoid(s). The sigmoid alone would be rounded to zero before the product is tiny, and exp(-s) overflows then.
inline float times_sigmoid(float x, float s) {
  if (s < -80.0f) {
    float h = exp(0.5f * s);
    return x * h * h;
  }
  return x / (1.0f + exp(-s));
}

inline float gelu_tanh(float x) {
  float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
  return times_sigmoid(x, 2.0f * inner);
}

inline float silu(float x) { return times_sigmoid(x, x); }

// The order of `Activation::WORDS` in rlx-ir; all threads of a dispatch take the same way.
inline float activate(uint kind, float x) {
  switch (kind) {
    case 1: return gelu(x);
    case 2: return gelu_tanh(x);
    case 3: return silu(x);
    case 4: return relu(x);
    case 5: return tanh(x);
    case 6: return sigmoid(x);
    default: return x;
  }
}
