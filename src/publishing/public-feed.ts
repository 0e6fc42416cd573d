import { decodeQueryEvent } from '../coordinator/query/stream/decode-event.ts'
import type { QueryEvent, QueryEventOf } from '../coordinator/query/stream/events.ts'
import { isSystemEventType, systemEventData } from '../coordinator/system/decode-event.ts'
import type { Recorded } from '../events/event-log.ts'
import { storableJson } from '../events/storable-text.ts'
import { isQueryId } from '../shared/ids.ts'
import { publicSchemaId, publicType, type PublicData, type PublicEventName } from './public-events.ts'
import type { Publication } from './publication.ts'
import type { QueryFacts } from './query-facts.ts'

export interface PublicFeedOptions {
  readonly logId: string
  /** Whether texts of statements and messages of errors are published. */
  readonly texts: boolean
}

const TOLD: ReadonlySet<string> = new Set([
  'QueryCreated',
  'QueryPlanned',
  'WriteCommitted',
  'QueryFinished',
  'QueryFailed',
  'DataForgotten',
])

/** One public event of any type. */
type PublicMessage = { [N in PublicEventName]: { readonly name: N; readonly data: PublicData<N> } }[PublicEventName]

/**
 * Publishes CloudEvents 1.0 in structured mode: a message stays complete wherever it is copied, and one schema checks
 * all of it.
 */
export function publicFeed({ logId, texts }: PublicFeedOptions): Publication {
  return {
    types: TOLD,
    async messageOf(recorded, facts) {
      const published = recorded.type === 'DataForgotten' ? forgotten(recorded) : await ofQuery(recorded, facts, texts)
      if (published === undefined) return undefined
      const { queryId } = published.data
      const { stream, sequence, time } = recorded
      const message = {
        specversion: '1.0',
        id: `${stream}/${sequence}`,
        source: `/quipu/${logId}`,
        type: publicType(published.name),
        subject: queryId,
        time,
        datacontenttype: 'application/json',
        dataschema: publicSchemaId(published.name),
        sequence,
        data: published.data,
      }
      return { key: queryId, text: storableJson(message) }
    },
  }
}

function forgotten({ type, v, data }: Recorded): PublicMessage | undefined {
  if (!isSystemEventType(type)) return undefined
  const { stream } = systemEventData('DataForgotten', v, data)
  return isQueryId(stream) ? { name: 'query.forgotten.v1', data: { queryId: stream } } : undefined
}

async function ofQuery(
  recorded: Recorded,
  facts: () => Promise<QueryFacts>,
  texts: boolean,
): Promise<PublicMessage | undefined> {
  const event = decodeQueryEvent(recorded)
  const queryId = recorded.stream
  switch (event?.type) {
    case 'QueryCreated':
      return { name: 'query.created.v1', data: { queryId, ...created(event.data, texts) } }
    case 'QueryPlanned':
      return { name: 'query.planned.v1', data: { queryId, ...planned(event.data) } }
    case 'WriteCommitted':
      return committed(queryId, event.data, await facts())
    case 'QueryFinished': {
      const { rows, bytes, updateCount } = event.data
      return {
        name: 'query.finished.v1',
        data: { queryId, rows, bytes, updateCount, totals: totalsOf(event.data.totals) },
      }
    }
    case 'QueryFailed': {
      const { errorName, errorCode, errorType, message } = event.data.failure
      return {
        name: 'query.failed.v1',
        data: {
          queryId,
          errorName,
          errorCode,
          errorType,
          ...(texts && { message }),
          totals: totalsOf(event.data.totals),
        },
      }
    }
    default:
      return undefined
  }
}

type Data<T extends QueryEvent['type']> = QueryEventOf<T>['data']

function created({ sql, resourceGroup, session }: Data<'QueryCreated'>, texts: boolean) {
  const { user, source, catalog, schema } = session
  return { user, source, catalog, schema, resourceGroup, ...(texts && { statement: sql }) }
}

function planned({ queryType, updateType, tables }: Data<'QueryPlanned'>) {
  return {
    queryType,
    updateType,
    // Field by field: further fields that the log has are not part of the public contract.
    tables: tables.map(({ catalog, schema, table, columns, mode }) => ({ catalog, schema, table, columns, mode })),
  }
}

function committed(
  queryId: string,
  { version, outcome }: Data<'WriteCommitted'>,
  facts: QueryFacts,
): PublicMessage | undefined {
  const { prepared } = facts
  if (prepared === undefined || outcome === 'impossible') return undefined
  const { catalog, schema, table, operation, rows, bytes } = prepared
  return { name: 'write.committed.v1', data: { queryId, catalog, schema, table, operation, rows, bytes, version } }
}

function totalsOf(totals: Data<'QueryFinished'>['totals']): PublicData<'query.finished.v1'>['totals'] {
  const { elapsedNanos, queuedNanos, analysisNanos, planningNanos, cpuNanos, peakMemoryBytes, spilledBytes } = totals
  return {
    elapsedNanos,
    queuedNanos,
    analysisNanos,
    planningNanos,
    cpuNanos,
    peakMemoryBytes,
    spilledBytes,
    inputRows: totals.rawInputPositions,
    inputBytes: totals.rawInputBytes,
    splits: totals.completedSplits,
  }
}
