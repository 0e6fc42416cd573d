import { describe, expect, it } from 'vitest'
import type { ReplayLine } from '../../src/replay/replay-line.ts'
import { reportPage } from '../../src/replay/report-page.ts'
import { createTally } from '../../src/replay/tally.ts'

const servers = { baseline: 'http://a', against: 'http://b', at: '2026-01-01T00:00:00.000Z' }
const named = (queryId: string) => ({ queryId, createdAt: '2026-01-01T00:00:00.000Z' })

function pageOf(lines: readonly ReplayLine[]): string {
  const tally = createTally()
  for (const line of lines) tally.add(line)
  return reportPage({ ...servers, tally })
}

describe('The report of a replay', () => {
  it('lists differences first, and leaves out statements that are the same', () => {
    const page = pageOf([
      { ...named('q1'), verdict: 'SAME' },
      { ...named('q2'), verdict: 'SKIPPED', reason: 'secrets' },
      { ...named('q3'), verdict: 'FAILED_THERE', there: { name: 'SYNTAX_ERROR', message: 'no' } },
      { ...named('q4'), verdict: 'DIFFERENT', difference: { kind: 'rows', here: 1, there: 2 } },
    ])
    expect(page).toContain('<h1>2 of 4 statements are different</h1>')
    const indexes = ['DIFFERENT', 'FAILED_THERE', 'SKIPPED'].map((id) => page.indexOf(`<section id="${id}">`))
    expect(indexes.every((index, i) => index > (indexes[i - 1] ?? 0))).toBe(true)
    expect(page).not.toContain('q1')
  })

  it('escapes statements, rows and errors, and keeps their line breaks', () => {
    const page = pageOf([
      {
        ...named('q1'),
        user: '"><script>alert(1)</script>',
        sql: "SELECT '</pre><img src=x onerror=alert(1)>'\n\tFROM t",
        verdict: 'DIFFERENT',
        difference: { kind: 'values', columns: [0], names: ['<i>'] },
        examples: [{ side: 'here', row: ['<b>', null] }],
      },
    ])
    expect(page.match(/<(script|img|b|i)\b/g)).toBeNull()
    expect(page).toContain('&#39;\n\tFROM t</pre>')
    expect(page).toContain('<td>&lt;b&gt;</td><td>NULL</td>')
  })

  it('stays below 100,000 characters with 5,000 differences', () => {
    const lines = Array.from({ length: 5000 }, (_, i): ReplayLine => ({
      ...named(`q${i}`),
      verdict: 'DIFFERENT',
      difference: { kind: 'rows', here: i, there: 0 },
    }))
    const page = pageOf(lines)
    expect(page).toContain('<h1>5000 of 5000 statements are different</h1>')
    expect(page).toContain('The first 200 of 5000.')
    expect(page.length).toBeLessThan(100_000)
  })
})
