import { expect, it } from 'vitest'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { createWriteGuard, type WriteGuard } from '../../../src/coordinator/query/execution/write-guard.ts'

const insert = (table: string): TableChange => ({ kind: 'insert', schema: 's', table })
const drop = (table: string): TableChange => ({ kind: 'dropTable', schema: 's', table })
const dropSchema: TableChange = { kind: 'dropSchema', schema: 's', cascade: true }

/** Of a query that nobody cancels. */
const ALIVE = new AbortController().signal

/** Enters when it may; `order` tells in which order changes did. */
function visitor(guard: WriteGuard) {
  const order: string[] = []
  const leave = new Map<string, () => void>()
  return {
    order,
    enter(name: string, change: TableChange, catalog = 'lake', signal = ALIVE) {
      guard.enter(catalog, change, signal).then(
        (left) => {
          order.push(name)
          leave.set(name, left)
        },
        () => order.push(`${name} gone`),
      )
    },
    leave: (name: string) => leave.get(name)!(),
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

it('lets inserts into one table in together, and keeps a DROP of it out until they are done', async () => {
  const guard = createWriteGuard()
  guard.open()
  const { order, enter, leave, settled } = visitor(guard)
  enter('a', insert('t'))
  enter('b', insert('t'))
  enter('drop', drop('t'))
  enter('other', drop('u'))
  enter('elsewhere', drop('t'), 'memory')
  await settled()
  expect(order).toEqual(['a', 'b', 'other', 'elsewhere'])
  leave('a')
  await settled()
  expect(order).not.toContain('drop')
  leave('b')
  leave('b')
  await settled()
  expect(order.at(-1)).toBe('drop')
})

it('lets nobody pass who came after one that waits for the same object', async () => {
  const guard = createWriteGuard()
  guard.open()
  const { order, enter, leave, settled } = visitor(guard)
  enter('a', insert('t'))
  enter('schema', dropSchema)
  enter('b', insert('t'))
  await settled()
  expect(order).toEqual(['a'])
  leave('a')
  await settled()
  expect(order).toEqual(['a', 'schema'])
  leave('schema')
  await settled()
  expect(order).toEqual(['a', 'schema', 'b'])
})

it('puts what was decided before ahead of all that is new', async () => {
  const guard = createWriteGuard()
  const { order, enter, settled } = visitor(guard)
  enter('new', drop('t'))
  enter('free', drop('u'))
  const done = guard.resume('lake', insert('t'))
  await settled()
  expect(order).toEqual([])
  guard.open()
  await settled()
  expect(order).toEqual(['free'])
  done()
  await settled()
  expect(order).toEqual(['free', 'new'])
})

it('forgets who is canceled while it waits, and lets in whom that one kept out', async () => {
  const guard = createWriteGuard()
  guard.open()
  const { order, enter, settled } = visitor(guard)
  const canceled = new AbortController()
  enter('a', insert('t'))
  enter('drop', drop('t'), 'lake', canceled.signal)
  enter('b', insert('t'))
  await settled()
  expect(order).toEqual(['a'])
  canceled.abort()
  await settled()
  expect(order.toSorted()).toEqual(['a', 'b', 'drop gone'])
  enter('late', insert('t'), 'lake', canceled.signal)
  await settled()
  expect(order).toContain('late gone')
})
