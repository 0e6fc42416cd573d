import { introducedKeySchema, keyIntroductionSchema } from '../../coordinator/system/key-introductions.ts'
import { z } from 'zod'
import { clusterStates } from '../../coordinator/clusters/state.ts'
import { announcementSchema, taskUpdateSchema } from '../../execution/api/task.ts'
import { rememberedSchema, sightingReportSchema } from '../relay/sighting-report.ts'
import { recordedDigestSchema } from '../../coordinator/query/stream/events.ts'
import { replayBeginningSchema, replayReportSchema } from '../replay/replay-report.ts'
import { routes, type MethodOf, type RoutePath } from '../edge/routes.ts'
import * as wire from './wire-schemas.ts'

/** Schemas that have a name in the document. */
const named = {
  Problem: wire.problem,
  QueryResults: wire.queryResults,
  StageStats: wire.stageStats,
  TaskInfo: wire.taskInfoSchema,
  TaskUpdate: taskUpdateSchema,
  NodeInfo: wire.nodeInfoSchema,
  ResourceGroupInfo: wire.resourceGroupInfo,
  ClusterInfo: wire.clusterInfoSchema,
  Announcement: announcementSchema,
  SightingReport: sightingReportSchema,
  Remembered: rememberedSchema,
  KeyIntroduction: keyIntroductionSchema,
  IntroducedKey: introducedKeySchema,
  ResultDigest: recordedDigestSchema,
  ReplayBeginning: replayBeginningSchema,
  ReplayReport: replayReportSchema,
  QueryListItem: wire.queryListItemSchema,
  TotalsInfo: wire.totalsInfoSchema,
  QueryInfo: wire.queryInfoSchema,
  StageInfo: wire.stageInfo,
  CloudEvent: wire.cloudEvent,
  OtlpTrace: wire.otlpTrace,
  ServerInfo: wire.serverInfo,
  ServerStatus: wire.serverStatus,
} as const
type SchemaName = keyof typeof named

type Json = Readonly<Record<string, unknown>>

const ref = (name: SchemaName): Json => ({ $ref: `#/components/schemas/${name}` })
const listOf = (name: SchemaName): Json => ({ type: 'array', items: ref(name) })
const json = (description: string, schema: Json, type = 'application/json', headers?: Json): Json => ({
  description,
  content: { [type]: { schema } },
  ...(headers ? { headers } : {}),
})
const nothing = (description: string): Json => ({ description })
const problem = (description: string): Json => ({
  description,
  content: { 'application/problem+json': { schema: ref('Problem') }, 'text/plain': { schema: { type: 'string' } } },
})

const parameter = (
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
const path = (name: string, description: string): Json => parameter('path', name, description)
const query = (name: string, description: string, schema?: Json): Json => parameter('query', name, description, schema)

const moment = { type: 'string', format: 'date-time' } as const
/** Parameters that choose queries. */
const ofQueries = [
  query('state', 'One or more states, separated by commas'),
  query('user', 'User of the queries'),
  query('source', 'Name of the client program'),
  query('app', 'Program that sent the statement, as the client says: `dbt`, `metabase` …'),
  query('appObject', 'Object of that program: a dbt model, a dashboard, a DAG'),
  query('appUser', 'User of that program'),
  query('resourceGroup', 'Resource group, its names separated by dots'),
  query('group', 'Group of the user'),
  query('tag', 'Client tag'),
  query('queryType', '`SELECT`, `INSERT` …'),
  query('plan', 'Where the plan runs: `local`, `coordinator`, `delegated`'),
  query('cluster', 'Cluster that ran the query'),
  query('error', 'Name of the error'),
  query('fingerprint', 'Fingerprint of the statement'),
  query('table', 'Table that the query reads or writes: `catalog.schema.table`, a name with a dot in double quotes'),
  query('since', 'Only queries that were created at or after this time, ISO 8601', moment),
  query('until', 'Only queries that were created before this time, ISO 8601', moment),
  query('q', 'Part of the first 4,096 characters of the text; upper and lower case are equal'),
]

const queryId = path('queryId', 'Identifier from the POST, yyyymmdd_hhmmss_NNNNN_xxxxx')
const taskId = path('taskId', 'Query identifier, stage and task number, separated by dots')
const clusterName = path('name', 'Name of its file, without `.json`')
const token = path('token', 'Last segment of nextUri')
/** Suffixes of the three header families and their meaning. A POST uses one family, and its answers use the same. */
const sessionParts = {
  User: 'User of the session; default `anonymous`',
  'Original-User': 'Original user, if the session changed its user',
  Source: 'Name of the client program',
  Catalog: 'Catalog for names without a catalog',
  Schema: 'Schema for names without a schema; needs a catalog',
  Path: 'Path in which functions are found',
  'Time-Zone': 'Time zone of the session; default: the time zone of the server',
  Language: 'Language tag',
  Session: 'Session properties: `name=value` pairs, URL-encoded, separated by commas',
  'Prepared-Statement': 'Prepared statements: `name=text` pairs, URL-encoded, separated by commas',
  'Transaction-Id': 'An open transaction, or NONE',
  Role: 'Roles: `catalog=role` pairs',
  'Client-Capabilities': 'Features that the client supports, separated by commas',
  'Client-Tags': 'Tags of the client, separated by commas',
  'Client-Info': 'Free text of the client about itself',
  'Trace-Token': 'Free text by which the client finds the query again',
  'Resource-Estimate': 'Estimates: `EXECUTION_TIME`, `CPU_TIME`, `PEAK_MEMORY`',
} as const
const sessionHeaders = Object.entries(sessionParts).map(([name, description]) =>
  parameter('header', `X-Engine-${name}`, `${description}. X-Trino-${name} and X-Presto-${name} mean the same`),
)
const integer: Json = { type: 'integer', minimum: 0 }
const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema })
/** Headers of the answers of a query that changed the session, in the family of its POST. */
const sessionChanges = Object.fromEntries(
  Object.entries({
    'Set-Catalog': 'USE: the new catalog',
    'Set-Schema': 'USE: the new schema',
    'Set-Path': 'SET PATH: the new path',
    'Set-Session': 'SET SESSION: `name=value`, URL-encoded',
    'Clear-Session': 'RESET SESSION: the name of the property',
    'Set-Role': 'SET ROLE: `catalog=role`, URL-encoded',
    'Added-Prepare': 'PREPARE: `name=text`, URL-encoded',
    'Deallocated-Prepare': 'DEALLOCATE PREPARE: the name of the statement',
    'Started-Transaction-Id': 'START TRANSACTION: the id that the client sends from now on',
    'Clear-Transaction-Id': 'COMMIT, ROLLBACK: the transaction has ended',
    'Set-Authorization-User': 'SET SESSION AUTHORIZATION: the new user',
    'Reset-Authorization-User': 'RESET SESSION AUTHORIZATION: the original user is back',
  }).map(([name, description]) => [`X-Engine-${name}`, header(description)]),
)
const internal = [{ clusterSecret: [] }]

const results = json('The status of the statement, or its rows', ref('QueryResults'), undefined, sessionChanges)
const unknownQuery = problem('The query does not exist')
const notAllowed = problem('The user may not see or change this query')
const uncertain = problem('It is not certain yet whether the end is recorded')
const sequence = {
  'X-Engine-Sequence': header('Sequence of the last event of the query that the answer includes', integer),
}
const format = query('format', '`json`: a browser gets the JSON, too; without it a browser is redirected to the page')
const asOf = query('asOf', 'The state after an event of the query (its sequence), or at an ISO 8601 time')
const stale = { 'X-Engine-Stale': header('How many milliseconds the answer may be behind', integer) }
const epoch = parameter(
  'header',
  'X-Engine-Epoch',
  'Epoch of the coordinator; if the worker has seen a higher one, it answers 409',
  integer,
)
const staleEpoch = problem('A coordinator with a higher epoch has taken over')

const unlikeTask = problem('A coordinator with a higher epoch has taken over, or the task is a part of its statement')

const page = (description: string): Json => ({
  description,
  content: { 'text/html': { schema: { type: 'string' } } },
})
const logIn = path('logIn', 'Identifier from WWW-Authenticate of a 401; valid for ten minutes')
const unknownLogIn = problem('The address is not from a 401, or this server has no such log-in')
const logInFailures = {
  403: page(
    'The request did not use HTTPS or did not come from a page of this server, or the identity provider refused it',
  ),
  404: page('This log-in has ended or never existed'),
  503: page('The identity provider or Postgres does not answer'),
} as const

/** Killed and preempted take the reason in the body. */
const killing = {
  parameters: [queryId],
  requestBody: {
    description: 'The reason, shown in the error; it may be empty. At most 16 KiB',
    content: { 'text/plain': { schema: { type: 'string' } } },
  },
  responses: {
    202: nothing('The end of the query is recorded in the event log'),
    400: problem('The message is not UTF-8'),
    403: problem('The user may not kill this query'),
    409: problem('The query has already ended, or can only finish'),
    410: problem('The query does not exist'),
    413: problem('The message is too long'),
    415: problem('The body has a Content-Encoding'),
    503: uncertain,
  },
} as const

const operations = {
  '/v1/statement': {
    post: {
      summary: 'Submit a statement',
      parameters: sessionHeaders,
      requestBody: { required: true, content: { 'text/plain': { schema: { type: 'string' } } } },
      responses: {
        200: results,
        400: problem('The statement is empty or not UTF-8, or the headers are of more than one family'),
        413: problem('The statement is too long'),
        415: problem('The body has a Content-Encoding'),
        429: problem('Too many open queries'),
        503: problem('The event log does not answer'),
      },
    },
  },
  '/v1/statement/{queryId}/{token}': {
    get: {
      summary: 'Status of a statement, or its next rows',
      parameters: [queryId, token],
      responses: { 200: results, 404: unknownQuery, 410: problem('The client has already requested a later page') },
    },
    delete: {
      summary: 'Cancel a statement',
      parameters: [queryId, token, ...sessionHeaders],
      responses: {
        204: nothing('The query was canceled, or it had already ended'),
        404: unknownQuery,
        503: uncertain,
      },
    },
  },
  '/v1/stage/{stageId}/{mac}': {
    delete: {
      summary: 'End a stage early: the query continues with the rows that the stage has made',
      parameters: [path('stageId', 'Query identifier and stage'), path('mac', 'Last segment of partialCancelUri')],
      responses: {
        204: nothing('The stage has ended'),
        404: unknownQuery,
        409: problem('The query writes data, so it cannot end early'),
      },
    },
  },
  '/v1/query': {
    get: {
      summary:
        'Open queries and queries that ended in the last 15 minutes, newest first; with filters also older queries',
      parameters: [
        ...ofQueries,
        query('limit', 'Most queries in the answer', { type: 'integer', minimum: 1, maximum: 1000 }),
        query('cursor', 'Cursor from the header Link of the page before'),
      ],
      responses: {
        200: json('Queries', listOf('QueryListItem'), undefined, stale),
        400: problem('A parameter is invalid'),
        503: problem('The history cannot be read'),
      },
    },
  },
  '/v1/query/totals': {
    get: {
      summary: 'Totals of the queries that GET /v1/query lists with the same filters, together and by state',
      parameters: ofQueries,
      responses: {
        200: json('Totals', ref('TotalsInfo'), undefined, stale),
        400: problem('A parameter is invalid'),
        503: problem('The history cannot be read'),
      },
    },
  },
  '/v1/query/{queryId}': {
    get: {
      summary: 'All details of a query',
      parameters: [queryId, asOf, format],
      responses: {
        200: json('The query', ref('QueryInfo'), undefined, sequence),
        303: nothing('For a browser: redirects to the page of the query'),
        400: problem('asOf is neither a sequence nor a time'),
        403: notAllowed,
        404: unknownQuery,
        410: problem('The data of the query was forgotten'),
        503: problem('The history cannot be read now'),
      },
    },
    delete: {
      summary: 'Cancel a query',
      parameters: [queryId],
      responses: {
        204: nothing('The query was canceled, had already ended, or never existed'),
        403: notAllowed,
        503: uncertain,
      },
    },
  },
  '/v1/query/{queryId}/killed': {
    put: {
      summary: 'Kill a query: it fails with ADMINISTRATIVELY_KILLED and the message',
      ...killing,
    },
  },
  '/v1/query/{queryId}/preempted': {
    put: {
      summary: 'Kill a query to make room for other queries: it fails with ADMINISTRATIVELY_PREEMPTED and the message',
      ...killing,
    },
  },
  '/v1/query/{queryId}/forget': {
    post: {
      summary: 'Remove the data of an ended query from the event log and the read models',
      description:
        'Allowed with the cluster secret (then `by` names the user), and for users who may write system information by the access rules',
      parameters: [queryId],
      responses: {
        200: json('How many events lost their data', { type: 'object', properties: { events: integer } }),
        401: problem('The request has neither a user nor the cluster secret'),
        403: problem('The user may not do this'),
        404: unknownQuery,
        409: problem('The query has not ended, or the log cannot forget'),
      },
    },
  },
  '/v1/query/{queryId}/events': {
    get: {
      summary: 'The events of a query as CloudEvents',
      parameters: [
        queryId,
        query('after', 'Sequence after which the answer begins', integer),
        query('limit', 'Most events in the answer', integer),
      ],
      responses: {
        200: json('Events, oldest first', listOf('CloudEvent'), 'application/cloudevents-batch+json', stale),
        403: notAllowed,
        404: unknownQuery,
        410: problem('The data of the query was forgotten'),
      },
    },
  },
  '/v1/query/{queryId}/digest': {
    get: {
      summary: 'The keyed digest of the rows of a finished query, for users who may see the rows',
      parameters: [queryId],
      responses: {
        200: json('Digest', ref('ResultDigest')),
        403: notAllowed,
        404: problem('The query does not exist, or has no digest'),
        409: problem('The query has not ended'),
        410: problem('The data of the query was forgotten'),
      },
    },
  },
  '/v1/query/{queryId}/trace': {
    get: {
      summary: 'The trace of an ended query as OTLP JSON, made from its events',
      parameters: [queryId],
      responses: {
        200: json('Resource spans', ref('OtlpTrace')),
        403: notAllowed,
        404: unknownQuery,
        410: problem('The data of the query was forgotten'),
        409: problem('The query has not ended'),
      },
    },
  },
  '/v1/events': {
    get: {
      summary: 'All valid events as server-sent events, from now on or after an id',
      description:
        'Each message has its position in the log as `id`, its type as `event` and its CloudEvent as `data`. A client that reconnects with its last id misses no event and gets none twice, from any coordinator of the log. Users without the right to see all queries get only the events of their own queries.',
      parameters: [
        query('query', 'Only events of these queries; ids separated by commas'),
        query('user', 'Only events of queries of these users'),
        query('type', 'Only events of these types: `QueryFinished` or `quipu.query.finished`'),
        query('state', 'Only events after which the query is in one of these states'),
        query('after', 'An id, or `beginning`; the header Last-Event-ID overrides it'),
        parameter('header', 'Last-Event-ID', 'Last id that the client received'),
      ],
      responses: {
        200: json(
          'An endless stream of events, with a comment every 15 seconds',
          { type: 'string' },
          'text/event-stream',
        ),
        400: problem('A parameter is invalid'),
        403: notAllowed,
        404: unknownQuery,
        410: problem('The log ends before this id'),
        429: problem('Too many readers'),
        503: problem('The event log does not answer, or the coordinator is about to stop'),
      },
    },
  },
  '/v1/system/sightings': {
    post: {
      summary: 'A follower reports to the writer which users it admitted and refused, and how often',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: ref('SightingReport') },
        },
      },
      responses: {
        200: json('What the writer remembers about these failures', ref('Remembered')),
        400: problem('The body is not a valid report of a coordinator'),
        401: problem('The request is not from a coordinator'),
      },
    },
  },
  '/v1/system/anchor-key': {
    post: {
      summary: 'A follower shows its anchor key to the writer, and signs the key of the writer',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: ref('KeyIntroduction') },
        },
      },
      responses: {
        200: json('The key of the writer', ref('IntroducedKey')),
        400: problem('The body is not a valid report of a coordinator'),
        401: problem('The request is not from a coordinator'),
        403: problem('The key does not prove that it belongs to this cluster'),
      },
    },
  },
  '/v1/system/rebuilt': {
    post: {
      summary: 'The command that rebuilt the read models reports it',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { type: 'object', properties: { events: integer, milliseconds: integer } } },
        },
      },
      responses: {
        204: nothing('Recorded'),
        400: problem('The body is not a report of a rebuild'),
        401: problem('The request has no cluster secret'),
      },
    },
  },
  '/v1/replay': {
    post: {
      summary: 'Record that a replay begins, before its first statement runs',
      requestBody: { required: true, content: { 'application/json': { schema: ref('ReplayBeginning') } } },
      responses: {
        200: json('Recorded', { type: 'object', properties: { replayId: { type: 'string' } } }),
        400: problem('The body is not a valid replay'),
        401: problem('The request has no valid credential'),
        403: problem('The user may not run statements'),
        429: problem('This user started too many replays within a minute'),
      },
    },
  },
  '/v1/replay/{replayId}': {
    put: {
      summary: 'Record the progress of a replay, or its end',
      parameters: [path('replayId', 'Identifier from the answer to POST /v1/replay')],
      requestBody: { required: true, content: { 'application/json': { schema: ref('ReplayReport') } } },
      responses: {
        204: nothing('Recorded, or skipped because the last report was very recent'),
        400: problem('The body is not a valid report'),
        401: problem('The request has no valid credential'),
        403: problem('The user may not run statements'),
        404: problem('This user has no such replay'),
        409: problem('The replay has ended'),
        429: problem('Too many reports about replays of this user within a minute'),
      },
    },
  },
  '/v1/resourceGroupState': {
    get: {
      summary: 'The root resource groups',
      responses: { 200: json('Groups', listOf('ResourceGroupInfo')) },
    },
  },
  '/v1/resourceGroupState/{group}': {
    get: {
      summary: 'A resource group, with its running queries that the user may see',
      parameters: [path('group', 'Names of the group from the root, each a segment of the path')],
      responses: { 200: json('The group', ref('ResourceGroupInfo')), 404: problem('The group does not exist') },
    },
  },
  '/v1/cluster': {
    get: {
      summary: 'The clusters that delegated statements may run at',
      responses: { 200: json('Clusters', listOf('ClusterInfo')) },
    },
  },
  '/v1/cluster/{name}': {
    get: {
      summary: 'A cluster',
      parameters: [clusterName],
      responses: { 200: json('The cluster', ref('ClusterInfo')), 404: problem('There is no such cluster') },
    },
  },
  '/v1/cluster/{name}/state': {
    put: {
      summary: 'Put a cluster into a state: only an ACTIVE one gets new statements, and running ones go on in each',
      description:
        'For the cluster secret, with `by`; and for users to whom the rules let write system information. An event records who asked, and why.',
      parameters: [clusterName],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['state'],
              properties: {
                state: { enum: clusterStates },
                reason: { type: 'string' },
                by: { type: 'string' },
              },
            },
          },
        },
      },
      responses: {
        200: json('It is in that state', ref('ClusterInfo')),
        400: problem('No such state'),
        401: problem('Neither a user nor the cluster secret'),
        403: problem('A user who may not'),
        404: problem('There is no such cluster'),
        503: problem('The event log does not answer'),
      },
    },
  },
  '/v1/cluster/{name}/events': {
    get: {
      summary: 'The events of a cluster as CloudEvents',
      parameters: [
        clusterName,
        query('after', 'Sequence to begin after', integer),
        query('limit', 'At most so many', integer),
      ],
      responses: {
        200: json('Events, oldest first', listOf('CloudEvent'), 'application/cloudevents-batch+json', stale),
        404: problem('There is no such cluster'),
        503: problem('The read models do not answer'),
      },
    },
  },
  '/v1/node': {
    get: {
      summary: 'The known workers, with decaying counters',
      responses: { 200: json('Nodes', listOf('NodeInfo'), 'application/javascript') },
    },
  },
  '/v1/node/failed': {
    get: {
      summary: 'Workers that failed the last heartbeat check',
      responses: { 200: json('Nodes', listOf('NodeInfo'), 'application/javascript') },
    },
  },
  '/v1/node/{nodeId}/state': {
    put: {
      summary: 'Drain a worker: it takes no new tasks, and ends when its tasks are no longer needed',
      description:
        'Only the writer answers. Allowed with the cluster secret (then `by` names the user), and for users who may write system information by the access rules',
      parameters: [path('nodeId', 'Identifier of the worker')],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              oneOf: [
                { const: 'SHUTTING_DOWN' },
                { type: 'object', properties: { state: { const: 'SHUTTING_DOWN' }, by: { type: 'string' } } },
              ],
            },
          },
        },
      },
      responses: {
        200: json('The worker takes no new tasks', {
          type: 'object',
          properties: { nodeId: { type: 'string' }, uri: { type: 'string' }, state: { type: 'string' } },
        }),
        400: problem('The state is not SHUTTING_DOWN'),
        401: problem('The request has neither a user nor the cluster secret'),
        403: problem('The user may not do this'),
        404: problem('The worker does not exist'),
        503: problem('The worker or the event log does not answer'),
      },
    },
  },
  '/v1/announcement': {
    put: {
      summary: 'A worker announces itself, each second',
      security: internal,
      requestBody: { required: true, content: { 'application/json': { schema: ref('Announcement') } } },
      responses: {
        204: nothing('The announcement was received'),
        400: problem('The body is not a valid announcement'),
        401: problem('The request has no cluster secret'),
      },
    },
  },
  '/v1/announcement/{nodeId}': {
    delete: {
      summary: 'A worker leaves',
      security: internal,
      parameters: [path('nodeId', 'Identifier of the worker')],
      responses: { 204: nothing('The worker is removed'), 401: problem('The request has no cluster secret') },
    },
  },
  '/v1/task': {
    get: {
      summary: 'All tasks that the server knows',
      parameters: [query('since', 'Internal: wait for tasks that changed after this version')],
      responses: { 200: json('Tasks', listOf('TaskInfo')), 401: problem('The request has no cluster secret') },
    },
    delete: {
      summary: 'Internal, on a worker: delete tasks of ended queries; unknown tasks are ignored',
      security: internal,
      parameters: [epoch],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { type: 'object', properties: { taskIds: { type: 'array', items: { type: 'string' } } } },
          },
        },
      },
      responses: {
        204: nothing('The tasks are deleted'),
        400: problem('The body is not a list of tasks'),
        401: problem('The request has no cluster secret'),
        405: problem('This server is a coordinator'),
        409: staleEpoch,
      },
    },
  },
  '/v1/task/{taskId}': {
    get: {
      summary: 'A task',
      parameters: [taskId, asOf],
      responses: {
        200: json('The task', ref('TaskInfo'), undefined, sequence),
        400: problem('asOf is neither a sequence nor a time, or this server is a worker'),
        404: problem('The task does not exist, or did not exist then'),
        503: problem('The history cannot be read now'),
      },
    },
    post: {
      summary: 'Create or update a task',
      security: internal,
      parameters: [taskId, epoch],
      requestBody: { required: true, content: { 'application/json': { schema: ref('TaskUpdate') } } },
      responses: {
        200: json('The task', ref('TaskInfo')),
        400: problem('The body is not a valid task update'),
        401: problem('The request has no cluster secret'),
        404: problem('This server is a coordinator'),
        409: staleEpoch,
      },
    },
    delete: {
      summary: 'Delete a task',
      security: internal,
      parameters: [taskId],
      responses: {
        200: json('The task after its end', ref('TaskInfo')),
        404: problem('The task does not exist'),
        409: staleEpoch,
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}/{token}': {
    get: {
      summary: 'A page of rows of a task',
      security: internal,
      parameters: [
        taskId,
        path('outputId', 'Output buffer'),
        path('token', 'Number of the page'),
        epoch,
        parameter('header', 'X-Engine-Max-Wait', 'How long the worker waits for the page, for example `500ms`'),
        parameter(
          'header',
          'X-Engine-Acknowledge',
          'The worker may delete pages before this one; fetching alone deletes none',
          integer,
        ),
      ],
      responses: {
        200: json('Rows', { type: 'array' }, undefined, {
          'X-Engine-Task-Instance-Id': header('Identifier of the process that holds the task'),
          'X-Engine-Page-Token': header('Number of this page', integer),
          'X-Engine-Page-Next-Token': header('Number of the next page', integer),
          'X-Engine-Buffer-Complete': header('`true`: no page follows'),
          'X-Engine-Page-Sha256': header("SHA-256 of the page's bytes"),
        }),
        204: nothing('The page is not ready yet, or no page follows'),
        404: problem('The task or the page does not exist'),
        409: unlikeTask,
        410: problem('The page was already acknowledged'),
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}': {
    delete: {
      summary: 'Delete the output of a task',
      security: internal,
      parameters: [taskId, path('outputId', 'Output buffer'), query('before', 'Only pages before this one', integer)],
      responses: { 204: nothing('The output is deleted'), 404: problem('The task does not exist'), 409: unlikeTask },
    },
  },
  '/v1/info': {
    get: { summary: 'Version and role of this server', responses: { 200: json('The server', ref('ServerInfo')) } },
  },
  '/v1/status': {
    get: { summary: 'Health of this server', responses: { 200: json('Its state', ref('ServerStatus')) } },
  },
  '/oauth2/token/initiate/{logIn}': {
    get: {
      summary: 'Show the user which program requests a log-in, and from where',
      parameters: [logIn],
      responses: { 200: page('A form that sends the POST'), ...logInFailures },
    },
    post: {
      summary: 'The user confirms; the browser continues at the identity provider',
      parameters: [logIn],
      responses: {
        200: page('Redirects to the identity provider'),
        ...logInFailures,
        409: page('The log-in has ended'),
        429: page('Too many log-ins are in progress'),
      },
    },
  },
  '/oauth2/revoke': {
    post: {
      summary: 'A program logs out (RFC 7009): its token and later tokens of the same log-in become invalid',
      requestBody: {
        required: true,
        content: {
          'application/x-www-form-urlencoded': {
            schema: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
          },
        },
      },
      responses: {
        200: nothing('The token is invalid now, or already was'),
        400: problem('The body is not UTF-8'),
        403: problem('The request did not use HTTPS'),
        413: problem('The body is too long'),
        415: problem('The body is not a form'),
        503: problem('Postgres does not answer'),
      },
    },
  },
  '/oauth2/callback': {
    get: {
      summary: 'Address to which the identity provider sends the browser back',
      parameters: [
        query('state', 'Identifies the log-in'),
        query('code', 'Code of the provider'),
        query('iss', 'Issuer: names the provider'),
        query('error', 'Reason why there is no code'),
        query('error_description', 'The reason in words'),
      ],
      responses: {
        200: page('The user is logged in'),
        400: page('The log-in belongs to another browser, has ended, or was already used'),
        ...logInFailures,
        409: page('The program no longer waits for the token'),
      },
    },
  },
  '/oauth2/token/{logIn}': {
    get: {
      summary:
        'The token for a program whose user logs in. The server waits up to ten seconds, and gives the token once',
      parameters: [logIn],
      responses: {
        200: json('Exactly one of the three fields', {
          type: 'object',
          properties: {
            token: { type: 'string', description: 'The client sends it as `Authorization: Bearer`' },
            error: { type: 'string' },
            nextUri: { type: 'string', description: 'There is no token yet: the client requests this address next' },
          },
        }),
        403: problem('The request did not use HTTPS'),
        404: unknownLogIn,
        503: problem('Postgres does not answer, or too many programs wait'),
      },
    },
    delete: {
      summary: 'The program has its token, or no longer needs it',
      parameters: [logIn],
      responses: { 204: nothing('The log-in is deleted'), 404: unknownLogIn, 503: problem('Postgres does not answer') },
    },
  },
  '/metrics': {
    get: {
      summary: 'Metrics for Prometheus',
      responses: { 200: json('OpenMetrics text', { type: 'string' }, 'application/openmetrics-text') },
    },
  },
  '/openapi.json': {
    get: { summary: 'This document', responses: { 200: json('OpenAPI 3.1', { type: 'object' }) } },
  },
} as const satisfies { readonly [P in RoutePath]: Readonly<Record<Lowercase<MethodOf<P>>, Json>> }

/** Refusals that any endpoint can return. */
const refusals = {
  BadRequest: [400, problem('The target, the headers or the body cannot be read')],
  Unauthenticated: [401, problem('The request has no valid credential: WWW-Authenticate lists the ways to log in')],
  Forbidden: [
    403,
    problem('The user may not do this, the request came from a page of another site, or a secret came over plain HTTP'),
  ],
  TooManyRequests: [
    429,
    problem('Too many log-ins or reads at once, or too many failed log-ins: Retry-After says when to try again'),
  ],
  TooManyHeaders: [431, problem('There are too many headers, or they are too long')],
  Unavailable: [
    503,
    problem('The server starts, or a service that it needs does not answer: Retry-After says when to try again'),
  ],
} as const

const anywhere = Object.fromEntries(
  Object.entries(refusals).map(([name, [status]]) => [status, { $ref: `#/components/responses/${name}` }]),
)

function withRefusals(operations: Readonly<Record<string, { readonly responses: Json }>>): Json {
  return Object.fromEntries(
    Object.entries(operations).map(([method, operation]) => [
      method,
      { ...operation, responses: { ...anywhere, ...operation.responses } },
    ]),
  )
}

/**
 * The REST interface as an OpenAPI 3.1 document. Its bodies come from the schemas that tests check real answers
 * against.
 */
export function openApiDocument(version: string): Json {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { uri: (id) => `#/components/schemas/${id}`, io: 'input' })
  return {
    openapi: '3.1.0',
    info: {
      title: 'Quipu',
      version,
      description: 'Coordinator of a distributed SQL engine; clients of Presto and Trino connect unchanged.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths: Object.fromEntries(
      (Object.keys(routes) as RoutePath[]).map((path) => [path, withRefusals(operations[path])]),
    ),
    components: {
      responses: Object.fromEntries(Object.entries(refusals).map(([name, [, response]]) => [name, response])),
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
      ),
      securitySchemes: { clusterSecret: { type: 'http', scheme: 'bearer' } },
    },
  }
}
