import { limitOwners } from '../../../src/shared/limit-owner.ts'
import { describe, expect, it } from 'vitest'
import { createEventRoutes } from '../../../src/protocol/events/event-routes.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import { openFeed } from '../../support/feed-client.ts'
import { serve } from '../../support/http-app.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { appendLives, queryLife, testQueryId } from '../../support/query-life.ts'

describe.runIf(await kafkaIsAvailable())('The event feed of a log with several log partitions', () => {
  it('resumes after each of its ids without losing or repeating an event', { timeout: 240_000 }, async () => {
    const fixture = await kafkaAdapter.fixture({ partitions: 3 })
    const log = await fixture.open()
    await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })
    const lives = Array.from({ length: 6 }, (_, number) => ({
      queryId: testQueryId(number),
      events: queryLife(testQueryId(number)),
    }))
    await appendLives(log, lives)
    const count = lives.reduce((sum, { events }) => sum + events.length, 1)
    const routes = createEventRoutes({
      ownerOf: limitOwners(false),
      log,
      identify: () => ({ user: 'root', groups: [] }),
      authorize: allowAll,
    })
    const app = await serve(routes.router)
    try {
      const url = `${app.base}/v1/events`
      const whole = await openFeed(`${url}?after=beginning`)
      await whole.received(count)
      whole.drop()
      const ids = whole.ids()
      expect(ids).toHaveLength(count)
      expect(new Set(ids).size).toBe(count)
      for (const { queryId, events } of lives)
        expect(ids.filter((id) => id.startsWith(queryId))).toEqual(events.map((_, index) => `${queryId}/${index + 1}`))
      expect(
        new Set(
          whole.blocks
            .at(-1)!
            .id.split(',')
            .map((part) => part.split('-')[0]),
        ),
      ).toEqual(new Set(['0', '1', '2']))
      for (const [index, block] of whole.blocks.entries()) {
        const rest = await openFeed(url, { 'last-event-id': block.id })
        await rest.received(count - index - 1)
        rest.drop()
        expect([...ids.slice(0, index + 1), ...rest.ids()].sort()).toEqual([...ids].sort())
      }
    } finally {
      await routes.close()
      await app.close()
      await fixture.close()
    }
  })
})
