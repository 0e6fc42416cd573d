import { expect, it } from 'vitest'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { createWriteGuard, type WriteGuard } from '../../../src/coordinator/query/execution/write-guard.ts'

const insert = (table: string): TableChange => ({ kind: 'insert', schema: 's', table })
const drop = (table: string): TableChange => ({ kind: 'dropTable', schema: 's', table })
const dropSchema: TableChange = { kind: 'dropSchema', schema: 's', cascade: true }

/** The signal of a query that is not canceled. */
const ALIVE = new AbortController().signal

/** Enters changes into the guard. `order` has their names in the order in which the guard admitted them. */
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

it('the write guard admits inserts into one table together, and a DROP of the table after them', async () => {
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

it('the write guard admits waiting changes of one object in their order of arrival', async () => {
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

it('the write guard admits new changes of a table after the resumed change of the table is done', async () => {
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

it('the write guard drops a canceled waiting change and admits the changes behind it', async () => {
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
