// Integer arithmetic that wraps and never traps, for every width.

template <typename I>
inline I wrap_add(I a, I b) {
  return I(ulong(a) + ulong(b));
}
template <typename I>
inline I wrap_sub(I a, I b) {
  return I(ulong(a) - ulong(b));
}
template <typename I>
inline I wrap_mul(I a, I b) {
  return I(ulong(a) * ulong(b));
}
template <typename I>
inline I wrap_neg(I a) {
  return I(0ul - ulong(a));
}
// Division by zero is an error of the graph that no kernel can report: it gives 0. The lowest value by -1 wraps.
template <typename I>
inline I safe_div(I a, I b) {
  if (b == I(0)) return I(0);
  return I(b + I(1)) == I(0) && I(0) > b ? wrap_neg(a) : I(a / b);
}
template <typename I>
inline I safe_rem(I a, I b) {
  if (b == I(0) || (I(b + I(1)) == I(0) && I(0) > b)) return I(0);
  return I(a % b);
}
template <typename I>
inline I int_abs(I a) {
  return I(0) > a ? wrap_neg(a) : a;
}
template <typename I>
inline I int_sign(I a) {
  return I(a > I(0)) - I(I(0) > a);
}
template <typename I>
inline I int_max(I a, I b) {
  return a > b ? a : b;
}
template <typename I>
inline I int_min(I a, I b) {
  return a < b ? a : b;
}
