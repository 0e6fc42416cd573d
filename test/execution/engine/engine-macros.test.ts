import { describe, expect, it } from 'vitest'
import { createMacros, type MacroDefinitions } from '../../../src/execution/engine/engine-macros.ts'

const definitions: MacroDefinitions = new Map([
  ['a', { statement: 'A', calls: ['b', 'c'] }],
  ['b', { statement: 'B', calls: ['c'] }],
  ['c', { statement: 'C', calls: [] }],
  ['d', { statement: 'D', calls: ['c'] }],
])

/** A fake engine instance: each statement ends when the test calls `next`. */
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

describe('The macros of an engine', () => {
  it('are defined at their first call, after the macros that they call', async () => {
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

  it('are defined once when several callers ask for them at the same time, and each caller waits', async () => {
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

  it('are defined again by the next caller if their definition failed', async () => {
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
