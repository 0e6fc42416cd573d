import { createHttpClient } from '../../shared/http-client.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import type { ServerTrust } from '../../shared/server-trust.ts'
import type { Service } from '../../shared/service.ts'
import { internalHeaders, type Announcement } from '../api/task.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface AnnouncerOptions {
  /** Base addresses of the coordinators. */
  readonly coordinators: readonly string[]
  readonly bearer: string
  /** Decides which servers count as coordinators. */
  readonly trust: ServerTrust
  /** @default 1000 */
  readonly everyMs?: number
  announcement(): Announcement
  /** Called when the log has the reset of epochs that an announcement reported. */
  readonly onRecorded?: (id: string) => void
  readonly onEvent?: (event: WorkerEvent) => void
}

export interface Announcer extends Service {
  /**
   * Stops, and reports to the coordinators that this worker will not come again. Ignores their answers and failures.
   */
  leave(): Promise<void>
}

/** `PUT /v1/announcement` to every coordinator, each second: it makes this worker known, and shows that it lives. */
export function createAnnouncer(options: AnnouncerOptions): Announcer {
  const everyMs = options.everyMs ?? 1000
  const http = createHttpClient(options.trust, { keepAlive: true })
  let timer: NodeJS.Timeout | undefined
  let stopped: Promise<void> | undefined
  const sending = new Set<Promise<void>>()

  function announce(): void {
    const announcement = options.announcement()
    const body = JSON.stringify(announcement)
    for (const url of options.coordinators) {
      const put = send(url, '/v1/announcement', { method: 'PUT', epochSeen: announcement.epochSeen, body }).then(
        () => options.onEvent?.({ type: 'announced', url }),
        (error: unknown) => options.onEvent?.({ type: 'announcementFailed', url, error }),
      )
      sending.add(put)
      void put.finally(() => sending.delete(put))
    }
  }

  function send(
    base: string,
    path: string,
    { method, epochSeen, body = '' }: { readonly method: string; readonly epochSeen: number; readonly body?: string },
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = http.request(
        {
          ...requestOptionsOf(base, path),
          method,
          // An answer that comes after the next announcement is of no use.
          timeout: everyMs,
          headers: {
            authorization: `Bearer ${options.bearer}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            [internalHeaders.epoch]: String(epochSeen),
          },
        },
        (response) => {
          response.resume()
          response.once('error', reject)
          response.once('end', () => {
            const status = response.statusCode ?? 0
            if (status < 200 || status >= 300) return reject(new Error(`HTTP ${status}`))
            const recorded = response.headers[internalHeaders.recorded]
            if (typeof recorded === 'string') options.onRecorded?.(recorded)
            resolve()
          })
        },
      )
      request.once('timeout', () => request.destroy(new Error('no answer in time')))
      request.once('error', reject)
      request.end(body)
    })
  }

  return {
    async start() {
      announce()
      timer = setInterval(announce, everyMs)
    },
    stop() {
      stopped ??= (async () => {
        clearInterval(timer)
        http.close()
      })()
      return stopped
    },
    async leave() {
      clearInterval(timer)
      // An announcement that arrives after the DELETE would make this worker known again.
      await Promise.all(sending)
      const { nodeId, epochSeen } = options.announcement()
      const path = `/v1/announcement/${encodeURIComponent(nodeId)}`
      await Promise.all(
        options.coordinators.map((url) => send(url, path, { method: 'DELETE', epochSeen }).catch(() => {})),
      )
      await this.stop()
    },
  }
}
