import { z } from 'zod'
import type { MirrorQueue } from '../replay/shadow/mirror-queue.ts'
import { isInSample, REPLAY_SOURCE } from '../replay/replay-source.ts'
import { parseJson } from '../shared/parse-json.ts'
import type { CalledServer } from './called-server.ts'
import { followEvents } from './event-stream.ts'

const finishedEventSchema = z.object({
  subject: z.string(),
  // Absent if the data was forgotten. Earlier versions of the event have other totals.
  data: z
    .object({
      updateType: z.string().optional(),
      totals: z.object({ elapsedNanos: z.number(), queuedNanos: z.number() }).optional().catch(undefined),
    })
    .nullish(),
})

export interface FollowOptions {
  /** Id of the last event that was read; undefined: only later queries. */
  readonly after: string | undefined
  readonly sample: number | undefined
  /** Queries that the shadow itself runs on the server. */
  readonly isOwn: (queryId: string) => boolean
  readonly signal: AbortSignal
  readonly onLost: (error: Error) => void
}

/**
 * Offers each query that finishes on a server to the queue, until the signal aborts. It never waits for the queue.
 * @throws FeedRefusedError when the server says that a retry is useless
 */
export async function followFinished(server: CalledServer, queue: MirrorQueue, options: FollowOptions): Promise<void> {
  const url = new URL('/v1/events', server.url)
  url.searchParams.set('type', 'QueryFinished')
  const events = followEvents({
    url: url.href,
    http: server.http,
    headers: {
      'X-Engine-User': server.user,
      'X-Engine-Source': REPLAY_SOURCE,
      ...server.credentialsFor(url.href),
    },
    after: options.after,
    signal: options.signal,
    onPosition: (id) => queue.reach(id),
    onLost: options.onLost,
  })
  for await (const { id, data } of events) {
    const event = finishedEventSchema.safeParse(parseJson(data)).data
    if (!event) continue
    const { subject: queryId, data: finished } = event
    if (options.isOwn(queryId)) continue
    const { elapsedNanos = 0, queuedNanos = 0 } = finished?.totals ?? {}
    const elapsedMs = Math.max(0, elapsedNanos - queuedNanos) / 1e6
    const sampled = options.sample === undefined || isInSample(queryId, options.sample)
    const leftOut = finished?.updateType !== undefined ? 'writes' : sampled ? undefined : 'notSampled'
    queue.offer({ queryId, elapsedMs }, id, leftOut)
  }
}
