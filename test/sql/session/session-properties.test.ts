import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  complaintAbout,
  faultOfValue,
  propertyValue,
  sessionProperties,
  sessionProperty,
} from '../../../src/sql/session/session-properties.ts'

const session = (properties: Readonly<Record<string, string>> = {}) => ({ properties })

describe('Session properties', () => {
  it('are sorted and unique, with valid defaults', () => {
    const names = sessionProperties().map(({ name }) => name)
    expect(names).toEqual([...new Set(names)].toSorted())
    const wrong = sessionProperties().filter(
      (property) =>
        property.defaultValue !== undefined && complaintAbout(property, property.defaultValue) !== undefined,
    )
    expect(wrong).toEqual([])
  })

  it('are read as values of their types', () => {
    const depth: number = propertyValue(session({ max_recursion_depth: '25' }), 'max_recursion_depth')
    expect(depth).toBe(25)
    const zone: string | undefined = propertyValue(session(), 'time_zone_id')
    expect(zone).toBeUndefined()
    expect(propertyValue(session({ time_zone_id: 'Asia/Tokyo' }), 'time_zone_id')).toBe('Asia/Tokyo')
  })

  it.each(['', ' ', 'many', '0', '-3', '1.5', 'NaN', 'Infinity'])('use the default if a client sends %j', (text) => {
    expect(propertyValue(session({ max_recursion_depth: text }), 'max_recursion_depth')).toBe(10)
  })

  it.each([
    ['max_recursion_depth', '0', 'max_recursion_depth must be equal or greater than 1'],
    ['query_priority', '-1', 'query_priority must be equal or greater than 1'],
    ['query_priority', '4294967297', "Session property 'query_priority' is invalid: '4294967297' is no integer"],
    [
      'join_partitioned_build_min_row_count',
      '-1',
      'join_partitioned_build_min_row_count must be equal or greater than 0',
    ],
    ['min_input_rows_per_task', '9223372036854775807', undefined],
    [
      'min_input_rows_per_task',
      '9223372036854775808',
      "Session property 'min_input_rows_per_task' is invalid: '9223372036854775808' is no bigint",
    ],
    ['retry_delay_scale_factor', '1e308', undefined],
    ['retry_delay_scale_factor', '0.5', 'retry_delay_scale_factor must be equal or greater than 1'],
    [
      'filter_conjunction_independence_factor',
      '2',
      'filter_conjunction_independence_factor must be in the range [0.00, 1.00]: 2.00',
    ],
    ['spill_enabled', 'yes', "Session property 'spill_enabled' is invalid: 'yes' is no boolean"],
    ['query_max_run_time', '0s', undefined],
    ['query_max_run_time', '-1s', 'duration is not a valid data duration string: -1s'],
    ['query_max_run_time', '1e308d', 'duration is not a valid data duration string: 1e308d'],
    ['query_max_run_time', `${'9'.repeat(400)}d`, `duration is not a valid data duration string: ${'9'.repeat(400)}d`],
    ['query_max_scan_physical_bytes', '1', 'size is not a valid data size string: 1'],
    ['query_max_run_time', '5m', undefined],
    ['query_max_run_time', '5 parsecs', 'duration is not a valid data duration string: 5 parsecs'],
    ['max_partial_top_n_memory', '1GB', undefined],
    ['max_partial_top_n_memory', 'much', 'size is not a valid data size string: much'],
    ['task_concurrency', '8', undefined],
    ['task_concurrency', '7', 'task_concurrency must be a power of 2: 7'],
    ['join_distribution_type', 'broadcast', undefined],
    ['join_distribution_type', 'LOUD', 'Invalid value [LOUD]. Valid values: [BROADCAST, PARTITIONED, AUTOMATIC]'],
    ['spill_enabled', 'true', undefined],
  ])('%s = %s: %s', (name, value, complaint) => {
    expect(faultOfValue(sessionProperty(name)!, value)).toBe(complaint)
  })

  it('are read by the program if and only if they are marked as acting', () => {
    const root = new URL('../../../src/', import.meta.url).pathname
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.ts') && !path.startsWith('sql/session/'),
    )
    const texts = files.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    const read = texts.flatMap(({ text }) =>
      [...text.matchAll(/propertyValue\([^,()]+, '(\w+)'\)/g)].map(([, name]) => name!),
    )
    const acting = sessionProperties().flatMap(({ name, acts }) => (acts ? [name] : []))
    expect([...new Set(read)].toSorted()).toEqual(acting)
    const around = texts.filter(({ text }) => /\bsession\.properties\[/.test(text))
    expect(around.map(({ path }) => path)).toEqual([])
  })
})
