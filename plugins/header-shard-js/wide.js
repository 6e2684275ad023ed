// Whole numbers of 64 bits in two halves of 32: BigInt would make each call thirty times as dear.
//
// There is one such number, `high` and `low`, which each step reads and writes: an object for every step would be garbage.

let high = 0, low = 0;

/** The hash of a text's bytes (FNV-1a), with every bit spread over all. There is no TextEncoder here. */
export function seedOf(text) {
  high = 0xcbf29ce4, low = 0x84222325;
  for (const sign of unescape(encodeURIComponent(text))) {
    low ^= sign.charCodeAt(0);
    multiply(0x100, 0x1b3);
  }
  mix();
  return { high, low };
}

/** 64 − log₂ of a seed mixed with a key, in units of 2^-32, times a number below 2^25: in two parts, of which the second is
 * below 2^19 and decides between equals. */
export function cost(seed, key, times, into, at) {
  high = seed.high, low = seed.low ^ key;
  mix();
  const logarithm = minusLog2();
  const rest = (logarithm % 0x80000) * times;
  into[at] = Math.floor(logarithm / 0x80000) * times + Math.floor(rest / 0x80000);
  into[at + 1] = rest % 0x80000;
}

/** The end of SplitMix64. */
function mix() {
  low ^= (low >>> 30) | (high << 2);
  high ^= high >>> 30;
  multiply(0xbf58476d, 0x1ce4e5b9);
  low ^= (low >>> 27) | (high << 5);
  high ^= high >>> 27;
  multiply(0x94d049bb, 0x133111eb);
  low ^= (low >>> 31) | (high << 1);
  high ^= high >>> 31;
}

function multiply(factorHigh, factorLow) {
  const carried = upperHalf(low >>> 0, factorLow);
  high = (Math.imul(high, factorLow) + Math.imul(low, factorHigh) + carried) | 0;
  low = Math.imul(low, factorLow);
}

/** What is beyond 32 bits in the product of two numbers of 32. */
function upperHalf(one, other) {
  const lower = Math.floor((one * (other & 0xffff)) / 0x10000);
  return Math.floor((one * (other >>> 16) + lower) / 0x10000);
}

/** A straight line between powers of two and the curve above it. */
function minusLog2() {
  low |= 1;
  const isHigh = high !== 0;
  const first = isHigh ? high : low, next = isHigh ? low : 0;
  const zeros = Math.clz32(first);
  const part = (((first << zeros) << 1) | (next >>> (31 - zeros))) >>> 0;
  // part × (2^32 − part) / 2^32, rounded down.
  const above = part - upperHalf(part, part) - (Math.imul(part, part) === 0 ? 0 : 1);
  return (zeros + (isHigh ? 1 : 33)) * 0x100000000 - part - Math.floor((above * 1409) / 4096);
}
