import { parseDuckDbType } from './duckdb-type-text.ts'
import { classifyText, isExact } from './classify-text.ts'
import { scalarBit } from './text-file.ts'

const WHOLE = /^-?\d+$/
const NUMBER = /^-?(\d+\.?\d*|\.\d+)$/
const BITS: Readonly<Record<string, bigint | undefined>> = { TINYINT: 8n, SMALLINT: 16n, INTEGER: 32n, BIGINT: 64n }

/**
 * Whether a text can be read as a declared type without the loss of a digit. Leading zeros of a number do not count.
 */
export function acceptsText(duckdbType: string, text: string): boolean {
  if (duckdbType === 'VARCHAR') return true
  const bits = BITS[duckdbType]
  if (bits !== undefined) {
    if (!WHOLE.test(text) || text.length > 40) return false
    const value = BigInt(text)
    return value >= -(2n ** (bits - 1n)) && value < 2n ** (bits - 1n)
  }
  if (duckdbType === 'DOUBLE') return hasBit('DOUBLE', text) || (NUMBER.test(text) && isExact(text))
  if (duckdbType === 'FLOAT')
    return hasBit('DOUBLE', text) && (Number.isNaN(Number(text)) || isExact(text, Math.fround(Number(text))))
  const type = parseDuckDbType(duckdbType)
  if (type.kind === 'decimal') return isDecimal(text, type.precision, type.scale)
  switch (duckdbType) {
    case 'TIMESTAMP_S':
      return /:\d\d:\d\d$/.test(text) && hasBit('TIMESTAMP', text)
    case 'TIMESTAMP_MS':
      return !/\.\d{4}/.test(text) && hasBit('TIMESTAMP', text)
    case 'TIMESTAMP_NS':
      return hasBit('TIMESTAMP', text.replace(/(\.\d{6})\d{1,3}$/, '$1')) && /^(1[7-9]|20|21)/.test(text)
    case 'JSON':
      return isJson(text)
    default:
      return hasBit(duckdbType, text)
  }
}

function hasBit(duckdbType: string, text: string): boolean {
  const bytes = Buffer.from(text)
  return bytes.length > 0 && (classifyText(bytes, 0, bytes.length) & (scalarBit(duckdbType) ?? 0)) !== 0
}

function isDecimal(text: string, precision: number, scale: number): boolean {
  if (!NUMBER.test(text)) return false
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  return whole.replace(/^0+/, '').length <= precision - scale && fraction.replace(/0+$/, '').length <= scale
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
