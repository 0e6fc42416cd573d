import { describe, expect, it } from 'vitest'
import { mergedGroups, TooManyGroups } from '../../src/readmodels/history/merge-groups.ts'

const groups = { by: [], measures: [{ name: 'n', of: 'count', type: 'bigint', column: undefined }] } as never

async function* pages(count: number, length: number) {
  for (let page = 0; page < count; page++)
    yield Array.from({ length: 1000 }, (_, i) => [`${page}-${i}`.padEnd(length, 'x'), '1'])
}

describe('`mergedGroups`', () => {
  it('merges groups of both sources that have the same key', async () => {
    const rows = await mergedGroups(groups, ['name', 'n'], [pages(1, 10), pages(2, 10)])
    expect(rows).toHaveLength(2000)
    expect(rows.slice(0, 1000).every(([, n]) => Number(n) === 2)).toBe(true)
    expect(rows.slice(1000).every(([, n]) => Number(n) === 1)).toBe(true)
  })

  it('throws TooManyGroups if the groups need too much memory', async () => {
    await expect(mergedGroups(groups, ['name', 'n'], [pages(40, 1000)])).rejects.toThrow(TooManyGroups)
  })
})
