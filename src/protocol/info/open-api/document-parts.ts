import { auditInfoSchema, auditReportSchema } from '../../audit/audit-info.ts'
import { actBody, actInfoSchema, actPreviewBody, actPreviewSchema } from '../../acts/act-schemas.ts'
import { introducedKeySchema, keyIntroductionSchema } from '../../../coordinator/system/key-introductions.ts'
import { announcementSchema, taskUpdateSchema } from '../../../execution/api/task.ts'
import { rememberedSchema, sightingReportSchema } from '../../relay/sighting-report.ts'
import { recordedDigestSchema } from '../../../coordinator/query/stream/events.ts'
import { replayBeginningSchema, replayReportSchema } from '../../replay/replay-report.ts'
import * as querySchemas from '../schemas/query.ts'
import * as serverSchemas from '../schemas/server.ts'
import * as statementSchemas from '../schemas/statement.ts'
import { taskInfoSchema } from '../schemas/task.ts'
import { problem } from '../schemas/values.ts'

/** Schemas that have a name in the document. */
export const namedSchemas = {
  Problem: problem,
  QueryResults: statementSchemas.queryResults,
  StageStats: statementSchemas.stageStats,
  TaskInfo: taskInfoSchema,
  TaskUpdate: taskUpdateSchema,
  NodeInfo: serverSchemas.nodeInfoSchema,
  ResourceGroupInfo: serverSchemas.resourceGroupInfo,
  ClusterInfo: serverSchemas.clusterInfoSchema,
  ErasureInfo: serverSchemas.erasureInfoSchema,
  Announcement: announcementSchema,
  SightingReport: sightingReportSchema,
  Remembered: rememberedSchema,
  KeyIntroduction: keyIntroductionSchema,
  IntroducedKey: introducedKeySchema,
  ResultDigest: recordedDigestSchema,
  ActPreviewRequest: actPreviewBody,
  ActPreview: actPreviewSchema,
  ActRequest: actBody,
  ActInfo: actInfoSchema,
  ReplayBeginning: replayBeginningSchema,
  ReplayReport: replayReportSchema,
  AuditReport: auditReportSchema,
  AuditInfo: auditInfoSchema,
  QueryListItem: querySchemas.queryListItemSchema,
  TotalsInfo: querySchemas.totalsInfoSchema,
  QueryInfo: querySchemas.queryInfoSchema,
  StageInfo: querySchemas.stageInfo,
  PlanNodeInfo: querySchemas.planNodeInfo,
  CloudEvent: querySchemas.cloudEvent,
  OtlpTrace: querySchemas.otlpTrace,
  ServerInfo: serverSchemas.serverInfo,
  ServerStatus: serverSchemas.serverStatus,
} as const

export type SchemaName = keyof typeof namedSchemas

export type Json = Readonly<Record<string, unknown>>

/** A reference to a schema that has a name in the document. */
export const ref = (name: SchemaName): Json => ({ $ref: `#/components/schemas/${name}` })

export const arrayOf = (name: SchemaName): Json => ({ type: 'array', items: ref(name) })

/** A body in JSON. */
export const json = (description: string, schema: Json, type = 'application/json', headers?: Json): Json => ({
  description,
  content: { [type]: { schema } },
  ...(headers ? { headers } : {}),
})

/** An answer without a body. */
export const nothing = (description: string): Json => ({ description })

/** An error as application/problem+json, or as text for clients that read only text. */
export const problemOf = (description: string): Json => ({
  description,
  content: { 'application/problem+json': { schema: ref('Problem') }, 'text/plain': { schema: { type: 'string' } } },
})

export const parameter = (
  where: 'path' | 'query' | 'header',
  name: string,
  description: string,
  schema: Json = { type: 'string' },
): Json => ({
  name,
  in: where,
  description,
  required: where === 'path',
  schema,
})

export const path = (name: string, description: string): Json => parameter('path', name, description)

export const query = (name: string, description: string, schema?: Json): Json =>
  parameter('query', name, description, schema)

export const queryId = path('queryId', 'Identifier from the POST, yyyymmdd_hhmmss_NNNNN_xxxxx')

export const countSchema: Json = { type: 'integer', minimum: 0 }

export const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema })

/** The security of operations that only processes of the cluster may call. */
export const internal = [{ clusterSecret: [] }]

export const unknownQuery = problemOf('The query does not exist')

export const uncertain = problemOf('It is not certain yet whether the end is recorded')

export const sequence = {
  'X-Engine-Sequence': header('Sequence of the last event of the query that the answer includes', countSchema),
}

export const asOf = query('asOf', 'The state after an event of the query (its sequence), or at an ISO 8601 time')

const stale = { 'X-Engine-Stale': header('How many milliseconds the answer may be behind', countSchema) }

/** Headers of lists of queries and their totals. */
export const staleSearch = {
  ...stale,
  'X-Engine-Searched-Since': header(
    'Present if only the newest queries were searched for `q`: those created at or after this time',
    { type: 'string', format: 'date-time' },
  ),
}

/** Parameters that choose a part of the events of a stream. */
export const eventPage = [
  query('after', 'Sequence after which the answer begins', countSchema),
  query('limit', 'Most events in the answer', countSchema),
]

export const cloudEvents = json(
  'Events, oldest first',
  arrayOf('CloudEvent'),
  'application/cloudevents-batch+json',
  stale,
)
