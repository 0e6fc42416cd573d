import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

let runner: LibraryRunner
beforeAll(async () => {
  runner = await openLibraryRunner()
})
afterAll(() => runner.close())

it.each([
  ["SELECT array_agg(regionkey ORDER BY 'x') FROM region WHERE regionkey = 1", [[[1]]]],
  ["SELECT array_agg(regionkey ORDER BY 'x', regionkey DESC) FROM region WHERE regionkey < 3", [[[2, 1, 0]]]],
  ['SELECT array_agg(regionkey ORDER BY 1) FROM region WHERE regionkey = 2', [[[2]]]],
  ["SELECT count(*) OVER (ORDER BY 'x') FROM region WHERE regionkey < 2", [[2], [2]]],
  ["SELECT name FROM region WHERE regionkey = 1 ORDER BY 'x' || 'y'", [['AMERICA']]],
])('ORDER BY a constant does not order rows: %s', async (sql, rows) => {
  expect((await runner.run(sql)).rows).toEqual(rows)
})
