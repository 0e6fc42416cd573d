import { describe, expect, it } from 'vitest'
import { sealedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import { createSecretValues } from '../../../src/sql/syntax/secret-values.ts'
import { StatementText } from '../../../src/sql/parsed-statement.ts'
import { redactStatement } from '../../../src/sql/syntax/redact-secrets.ts'

const redactText = (sql: string) => redactStatement(new StatementText(sql))
import { event, sampleData } from '../../support/query-events.ts'

const list = (count: number, item: (i: number) => string, separator = ', '): string =>
  Array.from({ length: count }, (_, i) => item(i)).join(separator)

describe('The secret values of a statement', () => {
  it.each([
    ['few', []],
    ['very many', Array.from({ length: 5_000 }, (_, i) => `other${i}`)],
  ])('are redacted in another text if there are %s', (_, others) => {
    const values = createSecretValues(['Hunter2', "it's", 'ab', 'two words', 'x'.repeat(500), ...others])
    expect(values.redactedIn("no 'hunter2' (HUNTER2), 'it''s', 'ab' ab \"AB\" two WORDS.")).toBe(
      "no '***' (***), '***', '***' ab \"***\" ***.",
    )
    expect(values.redactedIn(`a${'x'.repeat(500)}b`)).toBe('a***b')
    expect(values.redactedIn('nothing of it')).toBe('nothing of it')
    expect(['HUNTER2', 'ab', 'hunter'].map(values.isOne)).toEqual([true, true, false])
    expect(['a hunter2 b', 'two words', 'ab'].map(values.holdsOne)).toEqual([true, true, false])
  })

  it('are found as words and quoted texts, if there are too many for a search inside words', () => {
    const values = createSecretValues(Array.from({ length: 5_000 }, (_, i) => `value${i}x`))
    expect(values.redactedIn("Cannot cast 'value4711x' to int, value4999x = value5x")).toBe(
      "Cannot cast '***' to int, *** = ***",
    )
    expect(values.holdsOne('about value4711x')).toBe(true)
  })

  it('may be as many as the words of a long comment', () => {
    const { sql, values } = redactText(`SELECT 1 -- the password is ${list(190_000, () => 'ab1c', ' ')}`)
    expect(sql).toBe('SELECT 1 -- *** ')
    expect(values).toHaveLength(190_000)
  })

  it('take less than quadratic CPU time, even for a repetitive text or many values', () => {
    const { QueryCreated: created } = sampleData
    const { prepared } = sampleData.WritePrepared
    const work = {
      repeating(size: number) {
        const half = 'a'.repeat(size)
        redactText(`SELECT 1 WHERE password = '${half}b${half}' OR x = '${half}${half}${half}'`)
      },
      many(size: number) {
        const sql = `CREATE VIEW v AS SELECT 1 FROM t WHERE password IN (${list(size / 25, (i) => `'v${i}x'`)})`
        const { secrets } = sealedSubmission(new StatementText(sql), created.session, created)
        const definition = { sql, columns: [], catalog: 'lake', schema: 's', runAsInvoker: false }
        const change = { kind: 'createView', schema: 's', table: 'v', definition, replace: false } as const
        secrets.seal(event('WritePrepared', 0, { prepared: { ...prepared, change } }))
      },
    }
    for (const run of Object.values(work)) {
      const cpuOf = (size: number): number => {
        const before = process.cpuUsage()
        run(size)
        return process.cpuUsage(before).user
      }
      // The text is a hundred times as long. This once took ten thousand times as long. The short text takes almost
      // no time, so a busy machine or a garbage collection multiplies either measurement.
      const small = [1, 2, 3].map(() => cpuOf(15_000))
      const large = [1, 2, 3].map(() => cpuOf(1_500_000))
      expect(Math.min(...large)).toBeLessThan(1_500 * Math.max(...small))
    }
  })
})
