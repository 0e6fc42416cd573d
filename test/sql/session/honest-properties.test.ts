import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { durationOf, dataSizeOf } from '../../../src/shared/quantities.ts'
import type { ActingProperty } from '../../../src/sql/session/session-properties.ts'
import { sessionProperties } from '../../../src/sql/session/session-properties.ts'
import type { SessionProperty } from '../../../src/sql/session/session-property-table.ts'
import { analyze, session, shopMetadata } from '../../support/front-end.ts'

/** The tests that change a property and check its effect. */
const effects: Readonly<Record<ActingProperty, { readonly file: string; readonly says: string }>> = {
  max_recursion_depth: { file: 'sql/derived/sessions.jsonl', says: 'max_recursion_depth' },
  query_max_cpu_time: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_cpu_time' },
  query_max_execution_time: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_execution_time' },
  query_max_memory: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_memory=' },
  query_max_memory_per_node: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_memory_per_node' },
  query_max_planning_time: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_planning_time' },
  query_max_run_time: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_run_time' },
  query_max_scan_physical_bytes: { file: 'e2e/query-limits.e2e.test.ts', says: 'query_max_scan_physical_bytes' },
  query_priority: { file: 'e2e/resource-groups.e2e.test.ts', says: 'query_priority' },
  query_retry_attempts: { file: 'coordinator/query/query-limits.test.ts', says: 'query_retry_attempts' },
  retry_policy: { file: 'coordinator/query/query-limits.test.ts', says: 'retry_policy' },
  task_retry_attempts_per_task: {
    file: 'coordinator/query/query-limits.test.ts',
    says: 'task_retry_attempts_per_task',
  },
  time_zone_id: { file: 'sql/statements/statements.test.ts', says: 'time_zone_id' },
}

/** Returns a valid value for a property. */
function valueOf({ type, defaultValue, rule }: SessionProperty): string {
  if (defaultValue !== undefined) return defaultValue
  if (Array.isArray(rule)) return String(rule[0])
  if (rule === 'data size') return '1GB'
  return type === 'varchar' ? 'some' : '1'
}

function literalOf(property: SessionProperty): string {
  const value = valueOf(property)
  if (property.type === 'varchar') return `'${value}'`
  return property.type === 'double' ? `${value}e0` : value
}

const warned = async (sql: string, properties: Readonly<Record<string, string>> = {}) =>
  (await analyze(sql, shopMetadata(), { ...session, properties })).warnings

const warning = (name: string) => [
  {
    warningCode: { code: 65281, name: 'SESSION_PROPERTY_WITHOUT_EFFECT' },
    message: `Session property '${name}' has no effect here`,
  },
]

describe('Each session property that SHOW SESSION lists', () => {
  const listed = sessionProperties().filter(({ shown }) => shown)

  it.each(listed.map((property) => [property.name, property] as const))(
    '%s has an effect, or its use gives a warning',
    async (name, property) => {
      const expected = property.acts ? [] : warning(name)
      expect(await warned(`SET SESSION ${name} = ${literalOf(property)}`)).toEqual(expected)
      expect(await warned('SELECT 1', { [name]: valueOf(property) })).toEqual(expected)
      expect(await warned(`WITH SESSION ${name} = ${literalOf(property)} SELECT 1`)).toEqual(expected)
      expect(await warned(`RESET SESSION ${name}`)).toEqual([])
    },
  )

  it('is named in a test of its effect, if it has one', () => {
    const acting = sessionProperties().flatMap(({ name, acts }) => (acts ? [name] : []))
    expect(Object.keys(effects).toSorted()).toEqual(acting)
    for (const { file, says } of Object.values(effects))
      expect(readFileSync(join(import.meta.dirname, '../..', file), 'utf8')).toContain(says)
  })
})

describe('The session properties that a client sends', () => {
  it('give one short warning, however many and long they are', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `${'x'.repeat(300)}${index}.y`)
    const [first, ...others] = await warned('SELECT 1', Object.fromEntries(names.map((name) => [name, '1'])))
    expect(others).toEqual([])
    expect(first!.message).toMatch(/and 480 others have no effect here$/)
    expect(first!.message.length).toBeLessThan(4_000)
  })

  it.each([
    ['task_concurrency', '7', 'task_concurrency must be a power of 2: 7'],
    ['query_max_run_time', 'soon', 'duration is not a valid data duration string: soon'],
    ['max_recursion_depth', '-1', 'max_recursion_depth must be equal or greater than 1'],
    ['spill_enabled', '1', "Session property 'spill_enabled' is invalid: '1' is no boolean"],
  ])('%s=%s is refused with the error of SET SESSION', async (name, value, message) => {
    await expect(warned('SELECT 1', { [name]: value })).rejects.toMatchObject({
      errorName: 'INVALID_SESSION_PROPERTY',
      message,
    })
  })
})

describe('Durations and data sizes', () => {
  it.each([
    ['5m', 300e9, '5.00m'],
    [' 1.5 h ', 5400e9, '1.50h'],
    ['100.00d', 100 * 86_400e9, '100.00d'],
    ['0s', 0, '0.00s'],
    ['250ns', 250, '250.00ns'],
  ])('%s is a duration', (text, amount, shown) => expect(durationOf(text)).toEqual({ amount, shown }))

  it.each([
    ['20GB', 20 * 1024 ** 3, '20GB'],
    ['1.5kB', 1536, '1.50kB'],
    ['0B', 0, '0B'],
    ['1EB', 1024 ** 6, '1EB'],
  ])('%s is a data size', (text, amount, shown) => expect(dataSizeOf(text)).toEqual({ amount, shown }))

  it.each(['', 'm', '5', '5 parsecs', '-5m', '1e3s', '1e308d', '5GB', '0x5m', '5.m', 'Infinitys'])(
    '%j is no duration',
    (text) => expect(durationOf(text)).toBeUndefined(),
  )
})
