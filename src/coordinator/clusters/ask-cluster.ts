import { checkServerIdentity, createSecureContext } from 'node:tls'
import { z } from 'zod'
import { askServer, createHttpClient, type HttpClient } from '../../shared/http-client.ts'
import { parseJson } from '../../shared/parse-json.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { ServerTrust } from '../../shared/server-trust.ts'
import type { Cluster, ClusterTls } from './cluster.ts'

/** The answer of a cluster that was asked for its health. */
export interface ClusterAnswer {
  readonly starting: boolean
  readonly version: string | undefined
}

/** The server gave no answer in time, or an answer that a cluster which takes statements does not give. */
class NotACluster extends QuipuError {
  readonly retry = 'later'
}

const MOST_BYTES = 64 * 1024
/** The members of Trino's `/v1/info` that are used. Answers of other paths may lack them. */
const infoSchema = z.looseObject({
  starting: z.boolean().optional(),
  coordinator: z.boolean().optional(),
  nodeVersion: z.looseObject({ version: z.string() }).optional(),
})

/** Decides whether a server is the cluster: its certificate must be signed by the authorities of the cluster's file. */
function trustOf(tls: ClusterTls | undefined): ServerTrust {
  const context = tls && createSecureContext({ ...tls, minVersion: 'TLSv1.2' })
  return { context: () => context, identify: checkServerIdentity }
}

/**
 * Asks a cluster whether it takes statements.
 * @param http of `createCheckClient`
 * @param waitMs how long the whole answer may take
 * @throws Error with one line that says what is wrong
 */
export async function askCluster(cluster: Cluster, http: HttpClient, waitMs: number): Promise<ClusterAnswer> {
  const { url, healthPath } = cluster
  // Each check opens a new connection: on an old one it would not notice that the address accepts no new ones.
  const headers = { ...(await cluster.credentials()), accept: 'application/json' }
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), waitMs)
  try {
    const { status, text } = await askServer(http, url.origin, healthPath, {
      headers,
      mostBytes: MOST_BYTES,
      signal: late.signal,
    })
    if (status !== 200) throw new NotACluster(`GET ${healthPath} answered ${status}`)
    return answerOf(text, healthPath)
  } catch (error) {
    throw late.signal.aborted ? new NotACluster(`GET ${healthPath} had no answer within ${waitMs} ms`) : error
  } finally {
    clearTimeout(timer)
  }
}

function answerOf(text: string, healthPath: string): ClusterAnswer {
  const parsed = infoSchema.safeParse(parseJson(text))
  // A path that the file names may answer with any body, if the status is 200.
  if (!parsed.success && healthPath === '/v1/info')
    throw new NotACluster('GET /v1/info did not answer as Trino does: no coordinator listens there')
  const { starting = false, coordinator = true, nodeVersion } = parsed.data ?? {}
  if (!coordinator) throw new NotACluster('A worker listens there, no coordinator')
  return { starting, version: nodeVersion?.version.slice(0, 100) }
}

/** Makes the HTTP client for checks of a cluster; it opens a new connection for each check. */
export function createCheckClient(cluster: Pick<Cluster, 'tls'>): HttpClient {
  return createHttpClient(trustOf(cluster.tls), { keepAlive: false })
}
