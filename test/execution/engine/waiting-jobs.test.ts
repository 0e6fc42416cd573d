import { expect, it } from 'vitest'
import { WaitingJobs } from '../../../src/execution/engine/waiting-jobs.ts'
import { FakeJob } from '../../support/engine-fakes.ts'

it('WaitingJobs returns the jobs of each lane in the order of arrival', () => {
  const waiting = new WaitingJobs()
  for (const job of [new FakeJob('a', 'shared'), new FakeJob('b', 'dedicated'), new FakeJob('c', 'shared')])
    waiting.add(job)
  expect([waiting.count('shared'), waiting.count('dedicated')]).toEqual([2, 1])
  expect(waiting.next('shared')).toMatchObject({ id: 'a' })
  expect(waiting.next('shared')).toMatchObject({ id: 'c' })
  expect(waiting.next('shared')).toBeUndefined()
  expect(waiting.next('dedicated')).toMatchObject({ id: 'b' })
})

it('WaitingJobs removes only the given job, and ignores a second removal', () => {
  const waiting = new WaitingJobs()
  const [first, second] = [new FakeJob('a', 'shared'), new FakeJob('b', 'shared')]
  waiting.add(first)
  waiting.add(second)
  waiting.remove(first)
  waiting.remove(first)
  expect(waiting.next('shared')).toBe(second)
  expect(waiting.count('shared')).toBe(0)
})

it('WaitingJobs rejects all waiting jobs, each only once', () => {
  const waiting = new WaitingJobs()
  const jobs = [new FakeJob('a', 'shared'), new FakeJob('b', 'dedicated')]
  for (const job of jobs) waiting.add(job)
  waiting.rejectAll(new Error('first'))
  waiting.rejectAll(new Error('second'))
  expect(jobs.map((job) => job.refused?.message)).toEqual(['first', 'first'])
  expect([waiting.count('shared'), waiting.count('dedicated')]).toEqual([0, 0])
})
