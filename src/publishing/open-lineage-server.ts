import { readFile } from 'node:fs/promises'
import { endedAfter } from '../shared/deadline.ts'
import { askStatus, createHttpClient } from '../shared/http-client.ts'
import { createServerTrust } from '../shared/server-trust.ts'
import type { Delivery, Destination, Message } from './publication.ts'

export interface OpenLineageServerOptions {
  /** `https://host:port`, followed by the path before `/api/v1/lineage` if there is one. */
  readonly url: string
  /** The file with the key; read again for each delivery. */
  readonly apiKeyFile?: string | undefined
  /** Certificates (PEM) of the authorities for the server, in place of the public ones. */
  readonly caFile?: string | undefined
  /** How long to wait for an answer, milliseconds. @default 10 s */
  readonly answerMs?: number
}

/** Statuses with which a server says that it will never accept an event. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422])
const ANSWER_MS = 10_000

/**
 * Posts each message to `/api/v1/lineage`, one after the other.
 * @throws ExitError 64 when the certificates cannot be used
 */
export function openLineageServer({
  url,
  apiKeyFile,
  caFile,
  answerMs = ANSWER_MS,
}: OpenLineageServerOptions): Destination {
  const http = createHttpClient(createServerTrust({ tlsCaFile: caFile }), { keepAlive: true, maxSockets: 1 })
  const closing = new AbortController()
  const { origin, pathname, search } = new URL(url)
  const target = `${pathname.replace(/\/+$/, '')}/api/v1/lineage${search}`

  function post(body: string, key: string | undefined): Promise<number> {
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
    const headers = { 'content-type': 'application/json', ...authorization }
    return endedAfter(answerMs, closing.signal, (signal) =>
      askStatus(http, origin, target, { method: 'POST', headers, body, signal }),
    )
  }

  return {
    async deliver(messages: readonly Message[]): Promise<Delivery> {
      const refused: string[] = []
      let taken = 0
      try {
        const key = apiKeyFile === undefined ? undefined : (await readFile(apiKeyFile, 'utf8')).trim()
        for (const { text } of messages) {
          const status = await post(text, key)
          if (REFUSED.has(status)) refused.push(`The OpenLineage server answered ${status}`)
          else if (status < 200 || status >= 300)
            return { taken, refused, trouble: `The OpenLineage server answered ${status}` }
          taken++
        }
        return { taken, refused }
      } catch (error) {
        return { taken, refused, trouble: (error as Error).message }
      }
    },
    close() {
      closing.abort()
      http.close()
      return Promise.resolve()
    },
  }
}
