import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareResults, type Comparison } from '../../src/replay/compare-results.ts'
import { openScratch, type SentColumn, type ScratchResults } from '../../src/replay/scratch-results.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let scratch: ScratchResults
beforeAll(async () => {
  folder = temporaryFolder()
  scratch = await openScratch(folder.path)
})
afterAll(() => {
  scratch.close()
  folder.remove()
})

const columnsOf = (types: readonly string[]): SentColumn[] => types.map((type, i) => ({ name: `col${i}`, type }))

/** Reads pages as a result. Each page is the JSON text of its rows. */
async function result(types: readonly string[], ...pages: string[]) {
  const reader = scratch.begin()
  for (const page of pages) await reader.add(`{"id":"x","data":${page}}`, columnsOf(types))
  return reader.end(columnsOf(types))
}

async function compared(types: readonly string[], here: string, there: string): Promise<Comparison> {
  return compareResults(scratch, await result(types, here), await result(types, there))
}

const same = (order = true): Comparison => ({ kind: 'same', order })

describe('Results that compare as the same', () => {
  it.each<[string, string[], string, string, boolean?]>([
    ['the same rows in the same order', ['bigint', 'varchar'], '[[1,"a"],[2,null]]', '[[1,"a"],[2,null]]'],
    ['no rows', ['bigint'], '[]', '[]'],
    ['the same rows in another order', ['bigint', 'varchar'], '[[1,"a"],[2,null]]', '[[2,null],[1,"a"]]', false],
    ['sums of floating-point numbers in another order', ['bigint', 'double'], '[[1,0.30000000000000004]]', '[[1,0.3]]'],
    [
      'only floating-point numbers, in another order',
      ['double'],
      '[[0.30000000000000004],["NaN"],[1e300]]',
      '[[1e300],[0.3],["NaN"]]',
    ],
    ['infinities', ['double'], '[["Infinity"],["-Infinity"],[null]]', '[["Infinity"],["-Infinity"],[null]]'],
    ['sums near zero', ['double'], '[[1e9],[-1e9],[1e-8]]', '[[1e9],[-1e9],[0.0]]'],
    [
      'maps with another order of keys',
      ['map(varchar, integer)'],
      '[[{"a":1,"$.b\\"":2}],[null]]',
      '[[{"$.b\\"":2,"a":1}],[null]]',
    ],
    [
      'nested maps with another order of keys',
      ['array(row(x map(varchar, map(varchar, integer)), y integer))'],
      '[[[[{"a":{"x":1,"y":2},"b":null},1],null]]]',
      '[[[[{"b":null,"a":{"y":2,"x":1}},1],null]]]',
    ],
  ])('%s', async (_, types, here, there, order) => {
    expect(await compared(types, here, there)).toEqual(same(order))
  })

  it('are the same if only the borders of their pages differ', async () => {
    const here = await result(['bigint'], '[[1],[2]]', '[]', '[[3]]')
    const there = await result(['bigint'], '[[1]]', '[[2],[3]]')
    expect(await compareResults(scratch, here, there)).toEqual(same())
  })
})

describe('Results that differ', () => {
  it.each<[string, string[], string, string, object]>([
    ['a value', ['bigint', 'varchar'], '[[1,"a"]]', '[[1,"b"]]', { kind: 'values', columns: [1], names: ['col1'] }],
    ['NULL and its name', ['varchar'], '[[null]]', '[["null"]]', { kind: 'values', columns: [0], names: ['col0'] }],
    [
      'how often a value occurs',
      ['bigint'],
      '[[1],[1],[2]]',
      '[[1],[2],[2]]',
      { kind: 'values', columns: [0], names: ['col0'] },
    ],
    [
      'which values stand in one row',
      ['bigint', 'bigint'],
      '[[1,1],[2,2]]',
      '[[1,2],[2,1]]',
      { kind: 'values', columns: [], names: [] },
    ],
    ['the number of rows', ['bigint'], '[[1]]', '[[1],[1]]', { kind: 'rows', here: 1, there: 2 }],
    [
      'a digit that a JavaScript number cannot hold',
      ['bigint'],
      '[[9007199254740993]]',
      '[[9007199254740992]]',
      { kind: 'values', columns: [0], names: ['col0'] },
    ],
    [
      'a digit of an average',
      ['double'],
      '[[3.14159]]',
      '[[3.14158]]',
      { kind: 'floating', columns: [0], names: ['col0'] },
    ],
    [
      'the averages of two groups',
      ['varchar', 'double'],
      '[["a",1.0],["b",2.0]]',
      '[["a",2.0],["b",1.0]]',
      { kind: 'floating', columns: [1], names: ['col1'] },
    ],
    ['NaN and NULL', ['double'], '[["NaN"]]', '[[null]]', { kind: 'floating', columns: [0], names: ['col0'] }],
    [
      'the order in an array',
      ['array(integer)'],
      '[[[1,2]]]',
      '[[[2,1]]]',
      { kind: 'values', columns: [0], names: ['col0'] },
    ],
    [
      'a value of a map',
      ['map(varchar, integer)'],
      '[[{"a":1}]]',
      '[[{"a":2}]]',
      { kind: 'values', columns: [0], names: ['col0'] },
    ],
  ])('differ in %s', async (_, types, here, there, difference) => {
    expect(await compared(types, here, there)).toMatchObject({ kind: 'different', difference })
  })

  it('differ in the types of their columns', async () => {
    const here = await result(['bigint'], '[[1]]')
    const there = await result(['integer'], '[[1]]')
    expect(await compareResults(scratch, here, there)).toMatchObject({
      difference: { kind: 'columns', here: ['col0 bigint'], there: ['col0 integer'] },
    })
  })

  it('come with examples of the rows that only one side has', async () => {
    const found = await compared(['bigint', 'varchar'], '[[1,"a"],[2,null],[3,"c"]]', '[[1,"a"],[2,"b"],[3,"c"]]')
    expect(found).toMatchObject({
      examples: [
        { side: 'here', row: ['2', null] },
        { side: 'there', row: ['2', 'b'] },
      ],
    })
  })
})
