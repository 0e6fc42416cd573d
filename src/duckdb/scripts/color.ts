import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

// A colour is 0xRRGGBB, or -(n + 1) for the n-th system colour of the terminal.
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
  return mixed(Math.min(1, Math.max(0, share)), low, high)
}

/** Interpolates hue, saturation and brightness of two colours, which are defined as in java.awt.Color. */
function mixed(share: number, low: bigint, high: bigint): bigint {
  const [from, to] = [hsb(low), hsb(high)]
  const [hue, saturation, brightness] = from.map((part, i) => part + share * (to[i]! - part)) as [
    number,
    number,
    number,
  ]
  const sixth = (hue - Math.floor(hue)) * 6
  const rest = sixth - Math.floor(sixth)
  const channel = (part: number): bigint => BigInt(Math.trunc(part * 255 + 0.5) || 0)
  const [full, none] = [brightness, brightness * (1 - saturation)]
  const falling = brightness * (1 - saturation * rest)
  const rising = brightness * (1 - saturation * (1 - rest))
  const parts = [
    [full, rising, none],
    [falling, full, none],
    [none, full, rising],
    [none, falling, full],
    [rising, none, full],
    [full, none, falling],
  ][Math.floor(sixth) || 0]!
  const [red, green, blue] = parts.map(channel)
  return rgb(red!, green!, blue!)
}

function hsb(value: bigint): [number, number, number] {
  const [red, green, blue] = channels(value)
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)]
  const spread = most - least
  if (spread === 0) return [0, 0, most / 255]
  const from = (channel: number): number => (most - channel) / spread
  const sixth =
    red === most ? from(blue) - from(green) : green === most ? 2 + from(red) - from(blue) : 4 + from(green) - from(red)
  return [(sixth < 0 ? sixth + 6 : sixth) / 6, spread / most, most / 255]
}

/** The terminal's escape sequence for a colour, of 256 colours. */
function escape(value: bigint): string {
  if (value < 0n) return `\u001b[38;5;${Number(-value) - 1}m`
  const [red, green, blue] = channels(value).map((channel) => Math.trunc((channel * 6) / 256))
  return `\u001b[38;5;${16 + 36 * red! + 6 * green! + blue!}m`
}

const render = (text: string, value: bigint): string => `${escape(value)}${text}\u001b[0m`

/** The steps of bars by width and colours. */
const bars = new Map<string, string[]>()
/** The most steps that are cached. */
const MOST_STEPS = 100_000
let stepsKept = 0
const WIDEST = 1_000_000n

function stepsOf(length: number, count: number, low: bigint, high: bigint): string[] {
  const key = `${length} ${low} ${high}`
  if (stepsKept >= MOST_STEPS) {
    bars.clear()
    stepsKept = 0
  }
  const steps = bars.get(key) ?? []
  if (steps.length === 0) bars.set(key, steps)
  for (let i = steps.length; i < count; i++) {
    steps.push(`${escape(mixed(i / (length - 1), low, high))}█`)
    stepsKept++
  }
  return steps
}

function bar(share: number, width: bigint, low: bigint, high: bigint): string {
  if (low < 0n || high < 0n) throw invalidArgument('low and high must be RGB colors')
  // Each step has its own escape sequence: wider bars would fill the memory, in Trino too.
  if (width > WIDEST) throw new RangeError('a bar too wide')
  const length = Math.max(0, Number(width))
  const count = Math.min(length, Math.max(0, Math.trunc(share * length) || 0))
  return `${stepsOf(length, count, low, high).slice(0, count).join('')}\u001b[0m${' '.repeat(length - count)}`
}

export const colorScripts: readonly ScalarFunction[] = [
  { name: 'u_color', parameters: ['VARCHAR'], returns: 'BIGINT', call: color },
  { name: 'u_rgb', parameters: ['BIGINT', 'BIGINT', 'BIGINT'], returns: 'BIGINT', call: rgb },
  { name: 'u_color_between', parameters: ['DOUBLE', 'BIGINT', 'BIGINT'], returns: 'BIGINT', call: between },
  { name: 'u_render', parameters: ['VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: render },
  { name: 'u_bar', parameters: ['DOUBLE', 'BIGINT', 'BIGINT', 'BIGINT'], returns: 'VARCHAR', call: bar },
]
