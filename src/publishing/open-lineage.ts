import { createHash, createHmac } from 'node:crypto'
import { decodeQueryEvent } from '../coordinator/query/stream/decode-event.ts'
import type { QueryEvent, QueryEventOf } from '../coordinator/query/stream/events.ts'
import type { Recorded } from '../events/event-log.ts'
import { storableJson } from '../events/storable-text.ts'
import { version } from '../shared/version.ts'
import { datasetsOf, type InputDataset, type OutputDataset } from './open-lineage-datasets.ts'
import { facet, OPEN_LINEAGE, PRODUCER } from './open-lineage-facets.ts'
import type { Publication } from './publication.ts'
import type { QueryFacts } from './query-facts.ts'

export interface OpenLineageOptions {
  /** Namespace of jobs and datasets. */
  readonly namespace: string
  /** Whether texts of statements and messages of errors are published. */
  readonly statements: boolean
  /**
   * 32 bytes. The key makes job names that distinguish statements, and that cannot be used to test guesses of
   * statements.
   */
  readonly key: Buffer
}

/** A run of a statement, in the form of https://openlineage.io/spec/2-0-2/OpenLineage.json */
export interface RunEvent {
  readonly eventType: 'START' | 'COMPLETE' | 'FAIL' | 'ABORT'
  /** ISO UTC. */
  readonly eventTime: string
  readonly producer: string
  readonly schemaURL: string
  readonly run: { readonly runId: string; readonly facets: Facets }
  readonly job: { readonly namespace: string; readonly name: string; readonly facets: Facets }
  readonly inputs: readonly InputDataset[]
  readonly outputs: readonly OutputDataset[]
}

type Facets = Readonly<Record<string, object>>

const TOLD: ReadonlySet<QueryEvent['type']> = new Set(['QueryCreated', 'QueryFinished', 'QueryFailed'])

/** Publishes each statement as a run, with an event for its beginning and its end. */
export function openLineage(options: OpenLineageOptions): Publication {
  return {
    types: TOLD,
    async messageOf(recorded, facts) {
      const event = decodeQueryEvent(recorded)
      if (event === undefined) return undefined
      const run = runEventOf(event, recorded, await facts(), options)
      return run && { key: recorded.stream, text: storableJson(run) }
    },
  }
}

function runEventOf(
  event: QueryEvent,
  { stream, time }: Pick<Recorded, 'stream' | 'time'>,
  facts: QueryFacts,
  options: OpenLineageOptions,
): RunEvent | undefined {
  const eventType = eventTypeOf(event)
  if (eventType === undefined || facts.created === undefined) return undefined
  const { namespace } = options
  return {
    eventType,
    eventTime: time,
    producer: PRODUCER,
    schemaURL: `${OPEN_LINEAGE}#/$defs/RunEvent`,
    run: { runId: runIdOf(stream, facts.createdAt), facets: runFacets(event, facts, options) },
    job: { namespace, name: jobNameOf(facts.created, options.key), facets: jobFacets(facts.created, options) },
    ...datasetsOf(facts, namespace, eventType),
  }
}

function eventTypeOf(event: QueryEvent): RunEvent['eventType'] | undefined {
  switch (event.type) {
    case 'QueryCreated':
      return 'START'
    case 'QueryFinished':
      return 'COMPLETE'
    case 'QueryFailed':
      return endOf(event.data.failure)
    default:
      return undefined
  }
}

/** A run that a user, or the absence of its client, has ended was aborted: the statement itself did not fail. */
function endOf({ errorName }: QueryEventOf<'QueryFailed'>['data']['failure']): 'ABORT' | 'FAIL' {
  switch (errorName) {
    case 'USER_CANCELED':
    case 'ABANDONED_QUERY':
    case 'ADMINISTRATIVELY_KILLED':
    case 'ADMINISTRATIVELY_PREEMPTED':
      return 'ABORT'
    default:
      return 'FAIL'
  }
}

/**
 * The id of a run: a UUID of version 7 (RFC 9562) with the time of the query's creation, and a hash of the query's id
 * instead of random bits. It is the same whenever and by whichever process it is made.
 */
export function runIdOf(queryId: string, createdAt: string): string {
  const bytes = createHash('sha256').update(queryId).digest().subarray(0, 16)
  bytes.writeUIntBE(Date.parse(createdAt), 0, 6)
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

type Created = NonNullable<QueryFacts['created']>

const MOST_OF_SOURCE = 100

/** The name of a job. The same statement from the same source in the same catalog and schema is the same job. */
function jobNameOf({ sql, source = 'statement', catalog = '', schema = '' }: Created, key: Buffer): string {
  const digest = createHmac('sha256', key)
    .update(JSON.stringify([catalog, schema, sql]))
    .digest('hex')
    .slice(0, 16)
  return `${source.slice(0, MOST_OF_SOURCE)}.${digest}`
}

function jobFacets({ sql }: Created, { statements }: OpenLineageOptions): Facets {
  return {
    jobType: facet('JobTypeJobFacet', { processingType: 'BATCH', integration: 'QUIPU', jobType: 'QUERY' }),
    ...(statements && { sql: facet('SQLJobFacet', { query: sql, dialect: 'trino' }) }),
  }
}

function runFacets(event: QueryEvent, { queryId, created, planned }: QueryFacts, options: OpenLineageOptions): Facets {
  const tags = {
    user: created?.user,
    source: created?.source,
    resource_group: created?.resourceGroup,
    query_type: planned?.queryType,
    error_name: event.type === 'QueryFailed' ? event.data.failure.errorName : undefined,
  }
  return {
    processing_engine: facet('ProcessingEngineRunFacet', {
      version,
      name: 'quipu',
      openlineageAdapterVersion: version,
    }),
    externalQuery: facet('ExternalQueryRunFacet', { externalQueryId: queryId, source: options.namespace }),
    tags: facet('TagsRunFacet', {
      tags: Object.entries(tags).flatMap(([key, value]) =>
        value === undefined ? [] : [{ key, value, source: 'INTEGRATION' }],
      ),
    }),
    ...(event.type === 'QueryFailed' && { errorMessage: errorFacet(event.data.failure, options) }),
  }
}

/** The facet of an error. Its message may hold values of the statement or of tables; its name holds none. */
function errorFacet(
  { errorName, message }: QueryEventOf<'QueryFailed'>['data']['failure'],
  { statements }: OpenLineageOptions,
): object {
  const failureText = statements ? `${errorName}: ${message}` : errorName
  return facet('ErrorMessageRunFacet', { message: failureText, programmingLanguage: 'SQL' })
}
