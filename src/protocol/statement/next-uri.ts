import { createHmac, timingSafeEqual } from 'node:crypto'
import { createAddressSeal, type RelayedPage } from '../../coordinator/clusters/relay/sealed-address.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'

/**
 * The last segment of a nextUri: `{n}.{mac}`. n counts result pages; mac is 128 bits of HMAC-SHA256 over the query id
 * and n. Without authentication it is the only protection of a result. A stage's mac protects `partialCancelUri` in the
 * same way.
 *
 * If a cluster answers the query, the segment is `{n}.{sealed}`: the encrypted address of the page at the cluster,
 * which only coordinators can read. It is longer than a mac, and protects the page in the same way.
 */
export interface StatementUris {
  /** @param relayed the page at a cluster from which this page is made */
  nextUri(base: string, queryId: QueryId, token: number, relayed?: RelayedPage): string
  partialCancelUri(base: string, queryId: QueryId, stage: number): string
  infoUri(base: string, queryId: QueryId): string
  /** The page that an address of this server names; undefined when its form, its mac or its seal is wrong. */
  verifyPage(path: StatementPath): ResultPageAddress | undefined
  verifyStage(path: StagePath): ResultStage | undefined
}

/** A page of a query's result. */
export interface ResultPageAddress {
  readonly queryId: QueryId
  readonly token: number
  /** The page at a cluster from which it is made; undefined for results of this server. */
  readonly relayed?: RelayedPage
}

/** A stage of a query. */
interface ResultStage {
  readonly queryId: QueryId
  readonly stage: number
}

/** The parts of a statement's address, as they came. */
export interface StatementPath {
  readonly id: string
  readonly segment: string
}

/** The parts of a stage's address, as they came. */
export interface StagePath {
  readonly id: string
  readonly stage: number
  readonly mac: string
}

const STATEMENT = /^\/v1\/statement\/([^/]+)\/([^/]+)\/?$/
const STAGE = /^\/v1\/stage\/([^/.]+)\.(\d{1,6})\/([^/]+)\/?$/

export function statementPath(path: string): StatementPath | undefined {
  const [, id, segment] = STATEMENT.exec(path) ?? []
  return id === undefined || segment === undefined ? undefined : { id, segment }
}

export function stagePath(path: string): StagePath | undefined {
  const [, id, stage, mac] = STAGE.exec(path) ?? []
  return id === undefined || mac === undefined ? undefined : { id, stage: Number(stage), mac }
}

const MAC_CHARACTERS = 22

/** @param secret of the cluster, so that all its coordinators verify the same addresses */
export function createStatementUris(secret: string): StatementUris {
  const key = deriveKey(secret, 'statement-token')
  const seal = createAddressSeal(deriveKey(secret, 'remote-addresses'))
  const mac = (text: string): string =>
    createHmac('sha256', key).update(text).digest().subarray(0, 16).toString('base64url')
  const equal = (a: string, b: string): boolean =>
    a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
  return {
    nextUri(base, queryId, token, relayed) {
      const proof = relayed ? seal.sealPage(queryId, token, relayed) : mac(`${queryId}/${token}`)
      return `${base}/v1/statement/${queryId}/${token}.${proof}`
    },
    partialCancelUri: (base, queryId, stage) =>
      `${base}/v1/stage/${queryId}.${stage}/${mac(`${queryId}/stage/${stage}`)}`,
    infoUri: (base, queryId) => `${base}/v1/query/${queryId}`,
    verifyPage({ id, segment }) {
      const dot = segment.indexOf('.')
      const number = segment.slice(0, dot)
      if (dot < 1 || !/^\d{1,9}$/.test(number)) return undefined
      const token = Number(number)
      const proof = segment.slice(dot + 1)
      if (!isQueryId(id)) return undefined
      if (proof.length <= MAC_CHARACTERS)
        return equal(proof, mac(`${id}/${token}`)) ? { queryId: id, token } : undefined
      const relayed = seal.openPage(id, token, proof)
      return relayed && { queryId: id, token, relayed }
    },
    verifyStage: ({ id, stage, mac: given }) =>
      isQueryId(id) && equal(given, mac(`${id}/stage/${stage}`)) ? { queryId: id, stage } : undefined,
  }
}
