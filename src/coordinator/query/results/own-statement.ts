import { EngineError } from '../../../shared/engine-error.ts'
import type { ResourceGroups } from '../../dispatch/resource-groups.ts'
import type { QuerySession } from '../stream/events.ts'
import type { PostedTexts } from '../secrets/posted-texts.ts'
import type { StatementService } from './statement-service.ts'

export interface OwnStatementDeps {
  readonly service: Pick<StatementService, 'submit' | 'poll'>
  readonly texts: Pick<PostedTexts, 'seal'>
  /** The base of the addresses of the query. */
  readonly baseUri: string
  readonly groups: Pick<ResourceGroups, 'groupOf'>
}

/** The user of statements that the server runs by itself. */
const OWN_USER = 'quipu'
const POLL_MS = 1000

const session: QuerySession = {
  user: OWN_USER,
  groups: [],
  roles: {},
  source: 'table-rewriter',
  timeZone: 'UTC',
  properties: {},
  preparedStatements: {},
  capabilities: [],
  clientTags: [],
  resourceEstimates: {},
  remoteUserAddress: '127.0.0.1',
}

/**
 * Runs a statement of the server itself, as a query like those of clients: it has an id, events and rights.
 * @throws EngineError with the failure of the query
 */
export async function runOwnStatement(deps: OwnStatementDeps, sql: string): Promise<void> {
  const resourceGroup = deps.groups.groupOf({ session, queryType: () => undefined })
  const { baseUri } = deps
  const sealed = await deps.texts.seal(sql, session, { resourceGroup, baseUri, headerFamily: 'Trino', sampled: false })
  const { queryId } = await deps.service.submit(sealed)
  for (let token = 0; ;) {
    const answer = await deps.service.poll(queryId, token, POLL_MS)
    if (answer.kind !== 'answer') throw new EngineError('GENERIC_INTERNAL_ERROR', `Query ${queryId} is gone`)
    if (answer.failure) throw new EngineError(answer.failure.errorName, answer.failure.message)
    if (answer.nextToken === undefined) return
    token = answer.nextToken
  }
}
