import { type ColumnFunction, type ArgumentColumns, invalidArgument } from './scalar-function.ts'

// DuckDB looks up a zone again for every row if the zone is a value of a column. This module keeps each zone, with its
// offsets in the stretches of time that were used.

/**
 * Length of a stretch, seconds. A zone keeps an offset for at least four days, so it changes at most once in a stretch.
 */
const STRETCH = 2 ** 18
/** The most stretches that are kept for a zone: about eight centuries. */
const MOST_STRETCHES = 100_000
/** The end of JavaScript's Date, in seconds; later times use the calendar's cycle of 400 years. */
const LAST_SECOND = 8_640_000_000_000 - STRETCH
const CYCLE = 12_622_780_800
const DAY = 86_400

/** A zone's offset from UTC, in seconds. */
type OffsetAt = (second: number) => number

interface Stretch {
  readonly before: number
  readonly after: number
  /** The first second with the offset `after`. */
  readonly change: number
}

const FIXED = /^([+-])(\d\d):(\d\d)$/
const SHOWN = /GMT(?:([+-])(\d{1,2}):?(\d\d)?:?(\d\d)?)?$/

function seconds(match: RegExpExecArray): number {
  const [, sign, hours = '0', minutes = '0', rest = '0'] = match
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(rest))
}

function zoneOf(id: string): OffsetAt {
  const fixed = FIXED.exec(id)
  if (fixed === null) return id === 'UTC' ? () => 0 : namedZone(id)
  const offset = seconds(fixed)
  return () => offset
}

function namedZone(id: string): OffsetAt {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: id, timeZoneName: 'longOffset' })
  const ask: OffsetAt = (second) => {
    const shown = SHOWN.exec(format.format(second * 1000))
    if (shown === null) throw invalidArgument(`'${id}' has no offset`)
    return seconds(shown)
  }
  const stretches = new Map<number, Stretch>()
  return (second) => {
    const beyond = Math.abs(second) - LAST_SECOND
    const inRange = beyond <= 0 ? second : second - Math.sign(second) * Math.ceil(beyond / CYCLE) * CYCLE
    const index = Math.floor(inRange / STRETCH)
    let stretch = stretches.get(index)
    if (stretch === undefined) {
      if (stretches.size >= MOST_STRETCHES) stretches.clear()
      stretch = stretchFrom(index * STRETCH, ask)
      stretches.set(index, stretch)
    }
    return inRange < stretch.change ? stretch.before : stretch.after
  }
}

function stretchFrom(first: number, ask: OffsetAt): Stretch {
  const before = ask(first)
  const after = ask(first + STRETCH)
  if (before === after) return { before, after, change: first }
  let [low, high] = [first, first + STRETCH]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (ask(middle) === before) low = middle
    else high = middle
  }
  return { before, after, change: high }
}

const zones = new Map<string, OffsetAt>()
let last: { readonly id: string; readonly offsetAt: OffsetAt } | undefined

function offsetsOf(id: string): OffsetAt {
  if (last?.id === id) return last.offsetAt
  let offsetAt = zones.get(id)
  if (offsetAt === undefined) {
    offsetAt = zoneOf(id)
    zones.set(id, offsetAt)
  }
  last = { id, offsetAt }
  return offsetAt
}

/**
 * The seconds to add to a time of a zone. `second` is the time's own second; `from` is the second of the time from
 * which it was moved.
 */
type Distance = (second: number, offsetAt: OffsetAt, from: number) => number

const HALF = 2 ** 32
const SECOND = 1_000_000

/** A column of microseconds, accessed as 32-bit numbers, without a bigint for each value. */
class Times {
  readonly #exact: BigInt64Array<ArrayBuffer>
  readonly #halves: Int32Array<ArrayBuffer>

  constructor(exact: BigInt64Array<ArrayBuffer>) {
    this.#exact = exact
    this.#halves = new Int32Array(exact.buffer, exact.byteOffset, 2 * exact.length)
  }

  #near(row: number): number {
    return this.#halves[2 * row + 1]! * HALF + (this.#halves[2 * row]! >>> 0)
  }

  /** The second that contains a time. */
  second(row: number): number {
    const micros = this.#near(row)
    if (Number.isSafeInteger(micros)) return Math.floor(micros / SECOND)
    const exact = this.#exact[row]!
    return Number((exact - (((exact % 1_000_000n) + 1_000_000n) % 1_000_000n)) / 1_000_000n)
  }

  /** Moves a time by seconds. */
  move(row: number, seconds: number): void {
    const micros = this.#near(row)
    const sum = micros + seconds * SECOND
    if (Number.isSafeInteger(micros) && Number.isSafeInteger(sum)) {
      this.#halves[2 * row + 1] = Math.floor(sum / HALF)
      this.#halves[2 * row] = sum
    } else this.#exact[row]! += BigInt(seconds * SECOND)
  }
}

/** Makes a function that moves each time of the first column by a distance. */
function movedBy(distance: Distance): ColumnFunction['ofColumns'] {
  return ({ rows, numbers, texts, isKnown }: ArgumentColumns) => {
    const [all, origins] = numbers as [BigInt64Array<ArrayBuffer>, BigInt64Array<ArrayBuffer>?]
    const zoneIds = texts[0] as readonly string[]
    const times = new Times(all)
    const from = origins === undefined ? times : new Times(origins)
    for (let row = 0; row < rows; row++) {
      if (isKnown(row)) times.move(row, distance(times.second(row), offsetsOf(zoneIds[row]!), from.second(row)))
    }
    return all
  }
}

/** A function from the local time in a zone to its offset, in seconds. */
type Reading = (local: number, offsetAt: OffsetAt) => number

/** The offset of the day before, if it gives this local time or if no offset does; else the offset of the day after. */
const readEarlier: Reading = (local, offsetAt) => {
  const before = offsetAt(local - DAY)
  if (offsetAt(local - before) === before) return before
  const after = offsetAt(local + DAY)
  return offsetAt(local - after) === after ? after : before
}

/** Joda's reading: uses the offset of the local time taken as an instant, then the offset of the resulting instant. */
const readAsJoda: Reading = (local, offsetAt) => {
  const first = offsetAt(local)
  const second = offsetAt(local - first)
  return first < 0 && second !== first && offsetAt(local - second) !== second ? first : second
}

/** A local time that was moved from an instant keeps the instant's offset if it can. */
const readMoved: Distance = (local, offsetAt, from) => {
  const kept = offsetAt(from)
  return -(offsetAt(local - kept) === kept ? kept : readAsJoda(local, offsetAt))
}

/** Times are microseconds, of UTC or of the zone's local time. */
export const zoneScripts: readonly ColumnFunction[] = [
  {
    name: 'u_zone_local',
    parameters: ['BIGINT', 'VARCHAR'],
    ofColumns: movedBy((instant, offsetAt) => offsetAt(instant)),
  },
  {
    name: 'u_zone_instant',
    parameters: ['BIGINT', 'VARCHAR'],
    ofColumns: movedBy((local, offsetAt) => -readEarlier(local, offsetAt)),
  },
  {
    name: 'u_zone_joda',
    parameters: ['BIGINT', 'VARCHAR'],
    ofColumns: movedBy((local, offsetAt) => -readAsJoda(local, offsetAt)),
  },
  { name: 'u_zone_moved', parameters: ['BIGINT', 'BIGINT', 'VARCHAR'], ofColumns: movedBy(readMoved) },
]
