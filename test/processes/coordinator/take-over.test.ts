import { expect, it } from 'vitest'
import { LogChanged, LogUnavailable } from '../../../src/events/event-log.ts'
import { untilLogAnswers } from '../../../src/processes/coordinator/take-over.ts'

it('A take-over asks again while the log does not answer', async () => {
  const answers = [new LogUnavailable('busy'), new LogUnavailable('busy'), undefined]
  const pauses: number[] = []
  const asked = untilLogAnswers(
    () => {
      const error = answers.shift()
      return error ? Promise.reject(error) : Promise.resolve('open queries')
    },
    (milliseconds) => Promise.resolve(pauses.push(milliseconds)),
  )
  expect(await asked).toBe('open queries')
  expect(pauses).toEqual([50, 100])
})

it('A take-over throws any other error', async () => {
  const error = new LogChanged('other log')
  await expect(untilLogAnswers(() => Promise.reject(error))).rejects.toBe(error)
})
