import { expect, it } from 'vitest'
import type { TaskStats } from '../../../../src/execution/api/task.ts'
import type { QueryCommand } from '../../../../src/coordinator/query/stream/decider.ts'
import { Figures } from '../../../../src/coordinator/query/execution/figures.ts'
import type { QueryStep } from '../../../../src/coordinator/query/stream/query-aggregate.ts'
import type { KnownQuery } from '../../../../src/coordinator/query/stream/state.ts'
import type { TaskId } from '../../../../src/shared/ids.ts'

const HOUR_MS = 3_600_000

/** Figures of a query with two tasks. Both report once a second of a fake clock. */
function running(milliseconds: number, before: Partial<KnownQuery> = {}) {
  let now = 0
  const clock = { now: () => now, monotonicMs: () => now }
  const tasks = new Map(['a', 'b'].map((id) => [id as TaskId, { state: 'RUNNING' }]))
  const query = { kind: 'RUNNING', tasks, recoveries: 0, ...before } as unknown as KnownQuery
  const recorded: { at: number; commands: readonly QueryCommand[] }[] = []
  let woken = 0
  const figures = new Figures({
    clock,
    aggregate: { intended: query } as never,
    work: { suspended: undefined } as never,
    async record(steps: readonly QueryStep[]) {
      const commands = steps.flatMap((step) => (typeof step === 'function' ? step(query) : [step]))
      recorded.push({ at: now, commands })
    },
    wake: () => woken++,
  } as never)
  for (; now <= milliseconds; now += 1000)
    for (const task of tasks.keys()) figures.progressed(task, { outputRows: now } as unknown as TaskStats)
  return { figures, recorded, woken }
}

it('a query of one hour records at most 40 progress events, the first after 1, 3, 8 and 18 s', () => {
  const { recorded } = running(HOUR_MS)
  expect(recorded.length).toBeLessThanOrEqual(40)
  expect(recorded.slice(0, 4).map(({ at }) => at / 1000)).toEqual([1, 3, 8, 18])
})

it('a recovered query records progress at the intervals that fit its age', () => {
  const planned = { executionStartedAt: new Date(-20_000).toISOString() } as KnownQuery['planned']
  const { recorded } = running(HOUR_MS, { recoveries: 3, planned } as Partial<KnownQuery>)
  expect(recorded.slice(0, 3).map(({ at }) => at / 1000)).toEqual([20, 50, 110])
})

it('a progress event has the figures of all running tasks, and memory has the newest figures', () => {
  const { figures, recorded, woken } = running(100_000)
  const command = recorded.at(-1)!.commands[0]!
  if (command.type !== 'ReportProgress') throw new Error('it is no progress')
  expect(command.data.tasks.map(({ taskId }) => taskId)).toEqual(['a', 'b'])
  expect([...figures.live.values()]).toEqual([{ outputRows: 100_000 }, { outputRows: 100_000 }])
  expect(woken).toBe(202)
})
