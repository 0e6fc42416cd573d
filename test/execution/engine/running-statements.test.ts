import { expect, it } from 'vitest'
import { RunningStatements } from '../../../src/execution/engine/running-statements.ts'

/** The running statements of a process whose CPU time, in microseconds, the test sets. */
function running(): { statements: RunningStatements; use(micros: number): void } {
  let user = 1_000
  const statements = new RunningStatements(() => ({ user, system: 500 }))
  return { statements, use: (micros) => (user += micros) }
}

it('RunningStatements counts all CPU between begin and end for a statement that runs alone', () => {
  const { statements, use } = running()
  use(70)
  const statement = statements.begin(1, false)
  use(30)
  statements.end(statement)
  use(50)
  expect(statement).toMatchObject({ cpuMicros: 30, cpuExact: true })
  expect(statements.get(1)).toBeUndefined()
})

it('RunningStatements divides the CPU evenly among concurrent statements, and marks it as not exact', () => {
  const { statements, use } = running()
  const first = statements.begin(1, false)
  use(10)
  const second = statements.begin(2, false)
  use(20)
  statements.end(first)
  use(5)
  statements.end(second)
  expect(first).toMatchObject({ cpuMicros: 20, cpuExact: false })
  expect(second).toMatchObject({ cpuMicros: 15, cpuExact: false })
})
