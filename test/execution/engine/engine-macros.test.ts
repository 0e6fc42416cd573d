import { describe, expect, it } from 'vitest'
import { createMacros, type MacroDefinitions } from '../../../src/execution/engine/engine-macros.ts'

const definitions: MacroDefinitions = new Map([
  ['a', { statement: 'A', calls: ['b', 'c'] }],
  ['b', { statement: 'B', calls: ['c'] }],
  ['c', { statement: 'C', calls: [] }],
  ['d', { statement: 'D', calls: ['c'] }],
])

/** An instance that does what it is told when it is let. */
function instance() {
  const ran: string[] = []
  const waiting: ((error?: Error) => void)[] = []
  const run = (sql: string): Promise<void> => {
    ran.push(sql.replaceAll(/;\n/g, ' '))
    return new Promise((resolve, reject) =>
      waiting.push((error) => {
        if (error === undefined) resolve()
        else reject(error)
      }),
    )
  }
  const next = async (error?: Error): Promise<void> => {
    await new Promise(setImmediate)
    waiting.shift()!(error)
  }
  return { ran, run, next }
}

describe('macros of an engine', () => {
  it('are defined when they are first called, after those that they call', async () => {
    const { ran, run, next } = instance()
    const macros = createMacros(definitions, run)
    const first = macros.define(['b'])
    await next()
    await first
    const second = macros.define(['b', 'a', 'unknown'])
    await next()
    await second
    await macros.define(['a', 'c'])
    expect(ran).toEqual(['C B', 'A'])
  })

  it('are waited for by whoever calls them meanwhile', async () => {
    const { ran, run, next } = instance()
    const macros = createMacros(definitions, run)
    const over: string[] = []
    const all = [
      macros.define(['c']).then(() => over.push('c')),
      macros.define(['d']).then(() => over.push('d')),
      macros.define(['c']).then(() => over.push('c again')),
    ]
    await next()
    await all[0]
    expect(over).toEqual(['c'])
    await next()
    await Promise.all(all)
    expect(over.toSorted()).toEqual(['c', 'c again', 'd'])
    expect(ran).toEqual(['C', 'D'])
  })

  it('that could not be defined are tried again by the next who calls them', async () => {
    const { ran, run, next } = instance()
    const macros = createMacros(definitions, run)
    const failed = macros.define(['b'])
    const waiting = macros.define(['b'])
    await next(new Error('no memory'))
    await expect(failed).rejects.toThrow('no memory')
    await next()
    await waiting
    expect(ran).toEqual(['C B', 'C B'])
  })
})
