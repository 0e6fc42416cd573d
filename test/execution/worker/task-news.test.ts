import { describe, expect, it } from 'vitest'
import { TaskNews } from '../../../src/execution/worker/task-news.ts'

/** Longer than any test runs. */
const LONG_MS = 600_000

describe('TaskNews', () => {
  it('numbers its versions in steps of one', () => {
    const news = new TaskNews(100)
    expect([news.next(), news.next(), news.version]).toEqual([101, 102, 102])
  })

  it('returns at once from a wait for an older version, or without time to wait', async () => {
    const news = new TaskNews(100)
    await news.wait(99, LONG_MS)
    await news.wait(100, 0)
  })

  it('wakes a waiting caller once for all changes of one turn of the event loop', async () => {
    const news = new TaskNews(100)
    const seen = news.wait(100, LONG_MS).then(() => news.version)
    news.next()
    news.wake()
    news.next()
    news.wake()
    expect(await seen).toBe(102)
  })

  it('wakes no waiting caller for a new version without a wake, and wakes all at the next wake', async () => {
    const news = new TaskNews(100)
    const answers: string[] = []
    const early = news.wait(100, LONG_MS).then(() => answers.push('early'))
    news.next()
    const late = news.wait(100, LONG_MS).then(() => answers.push('late'))
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(answers).toEqual([])
    news.next()
    news.wake()
    await Promise.all([early, late])
    await news.wait(101, LONG_MS)
  })

  it('ends a wait at its timeout, and at the stop', async () => {
    const news = new TaskNews(100)
    await news.wait(100, 1)
    const waiting = news.wait(100, LONG_MS)
    news.stop()
    await waiting
  })
})
