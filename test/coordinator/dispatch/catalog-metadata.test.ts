import { expect, it } from 'vitest'
import type { Catalogs } from '../../../src/connectors/spi/catalogs.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import { listSplits } from '../../../src/coordinator/dispatch/catalog-metadata.ts'
import type { RenderedQuery } from '../../../src/planner/planned-statement.ts'

it('`listSplits` returns splits with the bytes of only the columns that the scan reads', async () => {
  const asked: unknown[] = []
  const connector = {
    connectorName: 'fake',
    listSplits: async (...[, , , columns]: Parameters<Connector['listSplits']>) => {
      asked.push(columns)
      const columnBytes = JSON.parse('{"a": 1, "b": 2, "__proto__": 3}') as Record<string, number>
      return [
        { catalog: 'c', data: {}, bytes: 6, columnBytes },
        { catalog: 'c', data: {}, bytes: 7 },
      ]
    },
  } as unknown as Connector
  const catalogs: Catalogs = { names: () => ['c'], get: () => connector }
  const scanOf = (columns: readonly string[]) => ({ catalog: 'c', schema: 's', table: 't', handle: {}, columns })
  const scans = [scanOf(['__proto__', 'missing', 'a']), scanOf([])]
  const { splits } = await listSplits(catalogs, { scans } as unknown as RenderedQuery)
  expect(asked).toEqual([['__proto__', 'missing', 'a'], []])
  expect(JSON.stringify(splits.map(({ scan, bytes, columnBytes }) => [scan, bytes, columnBytes]))).toBe(
    '[[0,6,{"__proto__":3,"a":1}],[0,7,null],[1,6,{}],[1,7,null]]',
  )
})
