import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

/** ln Γ(x), Lanczos' approximation. */
function logGamma(x: number): number {
  const g = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
    -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
  ]
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x)
  const z = x - 1
  const sum = g.reduce((total, factor, i) => total + factor / (z + i + 1), 0.99999999999980993)
  const t = z + g.length - 0.5
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(sum)
}

/** The regularised incomplete beta function, by its continued fraction (Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0
  if (x >= 1) return 1
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x))
  return x < (a + 1) / (a + b + 2) ? (front * fraction(x, a, b)) / a : 1 - (front * fraction(1 - x, b, a)) / b
}

function fraction(x: number, a: number, b: number): number {
  const tiny = 1e-300
  let c = 1
  let d = 1 - ((a + b) * x) / (a + 1)
  d = 1 / (Math.abs(d) < tiny ? tiny : d)
  let result = d
  for (let m = 1; m <= 500; m++) {
    for (const term of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 + term * d
      d = 1 / (Math.abs(d) < tiny ? tiny : d)
      c = 1 + term / c
      if (Math.abs(c) < tiny) c = tiny
      result *= d * c
    }
    if (Math.abs(d * c - 1) < 1e-16) break
  }
  return result
}

/** erfc by the incomplete gamma function: series below 1.5, continued fraction above. */
function erfc(x: number): number {
  if (x < 0) return 2 - erfc(-x)
  const square = x * x
  if (square < 2.25) {
    let term = x
    let sum = x
    for (let n = 1; n < 200; n++) {
      term *= -square / n
      sum += term / (2 * n + 1)
      if (Math.abs(term) < 1e-18 * Math.abs(sum)) break
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum
  }
  let value = 0
  for (let n = 200; n >= 1; n--) value = n / 2 / (x + value)
  return Math.exp(-square) / Math.sqrt(Math.PI) / (x + value)
}

const normalCdf = (mean: number, deviation: number, value: number): number => {
  if (!(deviation > 0)) throw invalidArgument('standardDeviation must be > 0')
  return 0.5 * erfc(-(value - mean) / (deviation * Math.SQRT2))
}

/** The inverse of a monotone function, by bisection to the last bit. */
function inverse(cdf: (x: number) => number, p: number, low: number, high: number): number {
  let [from, to] = [low, high]
  for (let i = 0; i < 2000; i++) {
    const middle = (from + to) / 2
    if (middle === from || middle === to) break
    if (cdf(middle) < p) from = middle
    else to = middle
  }
  return (from + to) / 2
}

function inverseNormal(mean: number, deviation: number, p: number): number {
  if (!(p > 0 && p < 1)) throw invalidArgument('p must be 0 > p > 1')
  if (!(deviation > 0)) throw invalidArgument('standardDeviation must be > 0')
  return mean + deviation * inverse((x) => 0.5 * erfc(-x / Math.SQRT2), p, -40, 40)
}

function beta(a: number, b: number, x: number): number {
  if (x < 0 || x > 1) throw invalidArgument('value must be in the interval [0, 1]')
  if (!(a > 0) || !(b > 0)) throw invalidArgument('a, b must be > 0')
  return incompleteBeta(x, a, b)
}

function inverseBeta(a: number, b: number, p: number): number {
  if (p < 0 || p > 1) throw invalidArgument('p must be in the interval [0, 1]')
  if (!(a > 0) || !(b > 0)) throw invalidArgument('a, b must be > 0')
  return inverse((x) => incompleteBeta(x, a, b), p, 0, 1)
}

function verifyDegrees(degrees: number): void {
  if (degrees < 1) throw invalidArgument('degrees of freedom must be greater than or equal to 1')
}

function tCdf(x: number, degrees: number): number {
  verifyDegrees(degrees)
  const tail = 0.5 * incompleteBeta(degrees / (degrees + x * x), degrees / 2, 0.5)
  return x > 0 ? 1 - tail : tail
}

function tPdf(x: number, degrees: number): number {
  verifyDegrees(degrees)
  const scale = logGamma((degrees + 1) / 2) - logGamma(degrees / 2) - 0.5 * Math.log(degrees * Math.PI)
  return Math.exp(scale - ((degrees + 1) / 2) * Math.log(1 + (x * x) / degrees))
}

const EARTH_RADIUS_KM = 6371.01

/**
 * Kilometres between two points given in degrees, by Vincenty's formula for a sphere, like Trino's geospatial plugin.
 */
function greatCircleDistance(latitude1: number, longitude1: number, latitude2: number, longitude2: number): number {
  for (const [latitude, longitude] of [
    [latitude1, longitude1],
    [latitude2, longitude2],
  ] as const) {
    if (!(Math.abs(latitude) <= 90)) throw invalidArgument('Latitude must be between -90 and 90')
    if (!(Math.abs(longitude) <= 180)) throw invalidArgument('Longitude must be between -180 and 180')
  }
  const [from, to, apart] = [radians(latitude1), radians(latitude2), radians(longitude1) - radians(longitude2)]
  const [sin1, cos1, sin2, cos2] = [Math.sin(from), Math.cos(from), Math.sin(to), Math.cos(to)]
  const across = cos2 * Math.sin(apart)
  const along = cos1 * sin2 - sin1 * cos2 * Math.cos(apart)
  const towards = sin1 * sin2 + cos1 * cos2 * Math.cos(apart)
  return Math.atan2(Math.sqrt(across * across + along * along), towards) * EARTH_RADIUS_KM
}

function radians(degrees: number): number {
  return degrees * (Math.PI / 180)
}

/** The index, from 1, of the sorted value at a share of the sum of the weights. */
function weightedIndex(weights: readonly number[], share: number): bigint {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let below = 0
  const index = weights.findIndex((weight) => (below += weight) > share * total)
  return BigInt(index < 0 ? weights.length : index + 1)
}

/** Indexes, from 1, of the sorted values in the middle of `count` even parts of the sum of their weights. */
function weighedPoints(weights: readonly number[], count: bigint): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const points: number[] = []
  let [at, below] = [0, weights[0] ?? 0]
  for (let point = 0.5; point < Number(count); point++) {
    while (at + 1 < weights.length && below <= (point / Number(count)) * total) below += weights[++at]!
    points.push(at + 1)
  }
  return points
}

/** Buckets in the order of their means, each with the indexes of its remaining neighbours. */
class Buckets {
  readonly size: number
  readonly means: Float64Array
  readonly counts: Float64Array
  readonly before: Int32Array
  readonly after: Int32Array

  constructor(sorted: Float64Array) {
    this.means = new Float64Array(sorted.length)
    this.counts = new Float64Array(sorted.length)
    let size = 0
    for (const value of sorted) {
      if (size === 0 || this.means[size - 1] !== value) this.means[size++] = value
      this.counts[size - 1]!++
    }
    this.size = size
    this.before = Int32Array.from({ length: size }, (_, i) => i - 1)
    this.after = Int32Array.from({ length: size }, (_, i) => i + 1)
  }

  /** Joins a bucket with the next bucket. @returns the index of the next bucket */
  join(at: number): number {
    const next = this.after[at]!
    const [count, other] = [this.counts[at]!, this.counts[next]!]
    this.means[at] = (this.means[at]! * count + this.means[next]! * other) / (count + other)
    this.counts[at] = count + other
    this.counts[next] = 0
    this.after[at] = this.after[next]!
    if (this.after[at]! < this.size) this.before[this.after[at]!] = at
    return next
  }

  /** The distance to the next bucket. */
  gap(at: number): number {
    const next = this.after[at]!
    if (next >= this.size) return Infinity
    const gap = this.means[next]! - this.means[at]!
    // Infinities and NaN are joined last, but they can be joined.
    return gap < Number.MAX_VALUE ? gap : Number.MAX_VALUE
  }
}

/**
 * Ben-Haim and Tom-Tov's histogram: joins the two closest buckets until few enough are left; among equals the first
 * pair.
 */
function numericHistogram(limit: bigint, values: readonly number[]): number[] {
  if (limit < 2n) throw invalidArgument('numeric_histogram bucket count must be greater than one')
  const buckets = new Buckets(Float64Array.from(values).sort())
  const gaps = new Gaps(Float64Array.from({ length: buckets.size }, (_, i) => buckets.gap(i)))
  for (let left = buckets.size; left > Number(limit); left--) {
    const at = gaps.least()
    gaps.set(buckets.join(at), Infinity)
    gaps.set(at, buckets.gap(at))
    const before = buckets.before[at]!
    if (before >= 0) gaps.set(before, buckets.gap(before))
  }
  const found: number[] = []
  for (let at = 0; at < buckets.size; at++) {
    if (buckets.counts[at]! > 0) found.push(buckets.means[at]!, buckets.counts[at]!)
  }
  return found
}

/** Distances, and the index of the least: a tournament in which the first of equals wins. */
class Gaps {
  readonly #leaves: number
  readonly #winners: Int32Array
  readonly #gap: Float64Array

  constructor(gaps: Float64Array) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(gaps.length, 2)))
    this.#gap = new Float64Array(this.#leaves).fill(Infinity)
    this.#gap.set(gaps)
    this.#winners = new Int32Array(2 * this.#leaves)
    for (let i = 0; i < this.#leaves; i++) this.#winners[this.#leaves + i] = i
    for (let node = this.#leaves - 1; node >= 1; node--) this.#winners[node] = this.#winnerOf(node)
  }

  least(): number {
    return this.#winners[1]!
  }

  set(at: number, gap: number): void {
    this.#gap[at] = gap
    for (let node = (this.#leaves + at) >> 1; node >= 1; node >>= 1) {
      const [before, winner] = [this.#winners[node]!, this.#winnerOf(node)]
      // If the same other winner wins again, nothing changes above.
      if (winner === before && winner !== at) return
      this.#winners[node] = winner
    }
  }

  #winnerOf(node: number): number {
    const left = this.#winners[2 * node]!
    const right = this.#winners[2 * node + 1]!
    return this.#gap[right]! < this.#gap[left]! ? right : left
  }
}

const three = (name: string, call: (a: number, b: number, c: number) => number): ScalarFunction => ({
  name,
  parameters: ['DOUBLE', 'DOUBLE', 'DOUBLE'],
  returns: 'DOUBLE',
  call,
})

const MOST_COMBINED = 5
const MOST_IN_COMBINATIONS = 100_000

/**
 * The indexes of the elements of all combinations, one combination after the other; combinations of earlier elements
 * come first.
 */
function combinations(elements: bigint, size: bigint): number[] {
  if (size < 0n) throw invalidArgument(`combination size must not be negative: ${size}`)
  if (size > MOST_COMBINED) throw invalidArgument(`combination size must not exceed ${MOST_COMBINED}: ${size}`)
  const [n, k] = [Number(elements), Number(size)]
  if (k > n) return []
  if (combinationCount(n, k) * k > MOST_IN_COMBINATIONS) throw invalidArgument('combinations exceed max size')
  const all: number[] = []
  const indexes = Array.from({ length: k }, (_, i) => i + 1)
  for (;;) {
    all.push(...indexes)
    // The first index that can increase without meeting the next one increases, and the indexes before it start again.
    const moving = indexes.findIndex((index, i) => index + 1 < (indexes[i + 1] ?? n + 1))
    if (moving < 0) return all
    indexes[moving]!++
    for (let i = 0; i < moving; i++) indexes[i] = i + 1
  }
}

/** The number of combinations by Trino's calculation, which fails beyond 32 bits. */
function combinationCount(n: number, k: number): number {
  let count = 1
  for (let i = 1; i <= k; i++) {
    const product = count * (n - k + i)
    if (product > 0x7fffffff) {
      throw invalidArgument(`Number of combinations too large for array of size ${n} and combination length ${k}`)
    }
    count = Math.trunc(product / i)
  }
  return count
}

export const statisticsScripts: readonly ScalarFunction[] = [
  three('u_normal_cdf', normalCdf),
  three('u_inverse_normal_cdf', inverseNormal),
  three('u_beta_cdf', beta),
  three('u_inverse_beta_cdf', inverseBeta),
  { name: 'u_combinations', parameters: ['BIGINT', 'BIGINT'], returns: 'DOUBLE[]', call: combinations },
  {
    name: 'u_great_circle_distance',
    parameters: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    returns: 'DOUBLE',
    call: greatCircleDistance,
  },
  { name: 'u_t_cdf', parameters: ['DOUBLE', 'DOUBLE'], returns: 'DOUBLE', call: tCdf },
  { name: 'u_t_pdf', parameters: ['DOUBLE', 'DOUBLE'], returns: 'DOUBLE', call: tPdf },
  { name: 'u_weighed_place', parameters: ['DOUBLE[]', 'DOUBLE'], returns: 'BIGINT', call: weightedIndex },
  { name: 'u_weighed_points', parameters: ['DOUBLE[]', 'BIGINT'], returns: 'DOUBLE[]', call: weighedPoints },
  { name: 'u_numeric_histogram', parameters: ['BIGINT', 'DOUBLE[]'], returns: 'DOUBLE[]', call: numericHistogram },
]
