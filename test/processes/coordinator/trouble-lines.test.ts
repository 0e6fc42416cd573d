import { expect, it } from 'vitest'
import { createTroubleLines } from '../../../src/processes/health/trouble-lines.ts'

it('failures of the event log are logged once a minute, with the number of failures between', () => {
  const lines: object[] = []
  let now = 0
  const report = createTroubleLines(
    { warn: (_name: string, fields: object) => void lines.push(fields) },
    { monotonicMs: () => now },
  )
  const away = () => new Error('connect ECONNREFUSED')
  for (; now <= 60_000; now += 500) report(away())
  report(new Error('another one'))
  expect(lines).toEqual([{ err: away() }, { err: away(), failuresBetween: 119 }, { err: new Error('another one') }])
})
