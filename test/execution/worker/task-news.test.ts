import { describe, expect, it } from 'vitest'
import { TaskNews } from '../../../src/execution/worker/task-news.ts'

/** Longer than any test. */
const LONG_MS = 600_000

describe('news of tasks', () => {
  it('have versions that go up by one', () => {
    const news = new TaskNews(100)
    expect([news.next(), news.next(), news.version]).toEqual([101, 102, 102])
  })

  it('are there at once when they are newer', async () => {
    const news = new TaskNews(100)
    await news.wait(99, LONG_MS)
    await news.wait(100, 0)
  })

  it('wake who waits, once for all that changes in a turn', async () => {
    const news = new TaskNews(100)
    const seen = news.wait(100, LONG_MS).then(() => news.version)
    news.next()
    news.wake()
    news.next()
    news.wake()
    expect(await seen).toBe(102)
  })

  it('are not there for what nobody is to be told, and come with what is told', async () => {
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

  it('are waited for so long and no longer, and not after the end', async () => {
    const news = new TaskNews(100)
    await news.wait(100, 1)
    const waiting = news.wait(100, LONG_MS)
    news.stop()
    await waiting
  })
})
