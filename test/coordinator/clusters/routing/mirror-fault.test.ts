import { describe, expect, it } from 'vitest'
import type { ConnectorColumn } from '../../../../src/connectors/spi/connector.ts'
import { mirrorFault } from '../../../../src/coordinator/clusters/routing/mirror-fault.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'

const column = (name: string, type: string, hidden = false): ConnectorColumn => ({ name, type, nullable: true, hidden })
const table = { catalog: 'lake', schema: 's', table: 't' }
const a = column('a', 'bigint')
const b = column('b', 'varchar')

const faultOf = (here: readonly ConnectorColumn[], there: readonly ConnectorColumn[] | undefined) =>
  mirrorFault([table], 'group big', {
    tableHere: async () => ({ columns: here }),
    columnsThere: async () => there,
  })

describe('A mirrored table', () => {
  it.each([
    ['the same columns', [a, b], [a, b], undefined],
    ['names and types in other letters', [a], [column('A', 'BIGINT')], undefined],
    ['a hidden column only here', [a, column('$path', 'varchar', true)], [a], undefined],
    ['another type', [a], [column('a', 'integer')], "differs: column 'a' is bigint here and integer at group big"],
    ['no such column', [a, b], [a], "differs: group big has no column 'b'"],
    ['one more column', [a], [a, b], "differs: only group big has a column 'b'"],
    ['another order', [a, b], [b, a], 'differs: the order of the columns is another one at group big'],
  ])('is compared with the table at the target: %s', async (_what, here, there, fault) => {
    expect(await faultOf(here, there)).toBe(fault && `table lake.s.t ${fault}`)
  })

  it.each([
    ['decimal(10, 2)', 'decimal(10,2)'],
    ['array(decimal(10, 2))', 'array(decimal(10,2))'],
    ['map(varchar, decimal(38, 0))', 'map(varchar, decimal(38,0))'],
    ['row(a decimal(10, 2), b array(row(c decimal(3, 1))))', 'row(a decimal(10,2), b array(row("c" decimal(3,1))))'],
    ['row("a b" decimal(10, 2), "select" bigint)', 'row("a b" decimal(10,2), select bigint)'],
    // Trino does not quote the names of fields in lists of columns.
    ['row("a b" decimal(10, 2), "c(d, e" bigint)', 'row(a b decimal(10,2), c(d, e bigint)'],
    ['row(a timestamp(3) with time zone)', 'row("A" TIMESTAMP(3) WITH TIME ZONE)'],
    ['objectid', 'ObjectId'],
  ])('has the same type in other notation: %s', async (here, there) => {
    expect(await faultOf([column('a', here)], [column('a', there)])).toBeUndefined()
  })

  it.each([
    ['decimal(10, 2)', 'decimal(10,3)'],
    ['array(decimal(10, 2))', 'array(decimal(1,2))'],
    ['row(a bigint)', 'row(b bigint)'],
    ['row("a b" bigint)', 'row("a  b" bigint)'],
    ['row("a bigint, b" bigint)', 'row(a bigint, b bigint)'],
    ['row(a1 bigint)', 'row(a1\u00e9 bigint)'],
    ['row(a decimal(10, 2))', 'row(a objectid)'],
    ['timestamp(3)', 'timestamp(6)'],
  ])('has another type: %s and %s', async (here, there) => {
    expect(await faultOf([column('a', here)], [column('a', there)])).toMatch(/^table lake.s.t differs: column 'a' is /)
    expect(await faultOf([column('a', there)], [column('a', here)])).toMatch(/^table lake.s.t differs: column 'a' is /)
  })

  it('stays here if this server or the target lacks it', async () => {
    expect(await faultOf([a], undefined)).toBe('group big has no table lake.s.t')
    const columnsThere = async () => [a]
    const missing = mirrorFault([table], 'group big', { tableHere: async () => undefined, columnsThere })
    expect(await missing).toBe('this server has no table lake.s.t')
  })

  it('stays here if it is a view of this server, or is in information_schema', async () => {
    const ports = { tableHere: async () => ({ columns: [a], view: { sql: 'TABLE u' } }), columnsThere: async () => [a] }
    expect(await mirrorFault([table], 'group big', ports)).toBe('table lake.s.t is a view of this server')
    const about = { ...ports, tableHere: async () => ({ columns: [a], about: 't' }) }
    expect(await mirrorFault([table], 'group big', about)).toBe('table lake.s.t is about this server')
    const own = { ...table, schema: 'information_schema' }
    expect(await mirrorFault([own], 'group big', ports)).toBe('table lake.information_schema.t is about this server')
  })

  it('stays here if its columns there are not known', async () => {
    const fault = mirrorFault([table], 'group big', {
      tableHere: async () => ({ columns: [a] }),
      columnsThere: () => Promise.reject(new EngineError('NO_NODES_AVAILABLE', 'No cluster answers')),
    })
    expect(await fault).toBe('the columns of table lake.s.t are not known: No cluster answers')
  })
})
