import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

// A colour is 0xRRGGBB, or -(n + 1) for the n-th of the terminal's own.
const system = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

function color(text: string): bigint {
  const hex = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text)
  if (hex !== null)
    return BigInt(
      Number.parseInt(
        hex
          .slice(1)
          .map((digit) => digit + digit)
          .join(''),
        16,
      ),
    )
  const index = system.indexOf(text.toLowerCase())
  if (index < 0) {
    throw invalidArgument(`Invalid color: '${text}'`)
  }
  return BigInt(-(index + 1))
}

function rgb(red: bigint, green: bigint, blue: bigint): bigint {
  for (const [name, value] of [
    ['red', red],
    ['green', green],
    ['blue', blue],
  ] as const) {
    if (value < 0n || value > 255n) throw invalidArgument(`${name} must be between 0 and 255`)
  }
  return (red << 16n) | (green << 8n) | blue
}

const channels = (value: bigint): [number, number, number] => [
  Number(value >> 16n) & 255,
  Number(value >> 8n) & 255,
  Number(value) & 255,
]

function between(share: number, low: bigint, high: bigint): bigint {
  if (low < 0n || high < 0n) throw invalidArgument('low and high must be RGB colors')
  const at = Math.min(1, Math.max(0, share))
  const [from, to] = [channels(low), channels(high)]
  const [red, green, blue] = from.map((channel, i) => BigInt(Math.trunc(channel + at * (to[i]! - channel))))
  return rgb(red!, green!, blue!)
}

/** The terminal's escape for a colour: 256 colours. */
function escape(value: bigint): string {
  if (value < 0n) return `\u001b[3${Number(-value) - 1}m`
  const [red, green, blue] = channels(value).map((channel) => Math.trunc((channel * 5) / 255))
  return `\u001b[38;5;${16 + 36 * red! + 6 * green! + blue!}m`
}

const render = (text: string, value: bigint): string => `${escape(value)}${text}\u001b[0m`

/** The steps of bars by their width and colours. */
const bars = new Map<string, string[]>()
/** Steps that are kept at most. */
const MOST_STEPS = 100_000
let stepsKept = 0

function stepsOf(length: number, count: number, low: bigint, high: bigint): string[] {
  const key = `${length} ${low} ${high}`
  if (stepsKept >= MOST_STEPS) {
    bars.clear()
    stepsKept = 0
  }
  const steps = bars.get(key) ?? []
  if (steps.length === 0) bars.set(key, steps)
  for (let i = steps.length; i < count; i++) {
    steps.push(`${escape(between(i / length, low, high))}█`)
    stepsKept++
  }
  return steps
}

function bar(share: number, width: bigint, low: bigint, high: bigint): string {
  const length = Number(width)
  const count = Math.min(length, Math.max(0, Math.trunc(share * length)))
  if (!(count > 0)) return ' '.repeat(length)
  return `${stepsOf(length, count, low, high).slice(0, count).join('')}\u001b[0m${' '.repeat(length - count)}`
}

export const colorScripts: readonly ScalarFunction[] = [
  { name: 'u_color', parameters: ['VARCHAR'], returns: 'BIGINT', call: color },
  { name: 'u_rgb', parameters: ['BIGINT', 'BIGINT', 'BIGINT'], returns: 'BIGINT', call: rgb },
  { name: 'u_color_between', parameters: ['DOUBLE', 'BIGINT', 'BIGINT'], returns: 'BIGINT', call: between },
  { name: 'u_render', parameters: ['VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: render },
  { name: 'u_bar', parameters: ['DOUBLE', 'BIGINT', 'BIGINT', 'BIGINT'], returns: 'VARCHAR', call: bar },
]
