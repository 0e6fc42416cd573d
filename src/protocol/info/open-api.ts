import { introducedKeySchema, keyIntroductionSchema } from '../../coordinator/system/key-introductions.ts'
import { z } from 'zod'
import { announcementSchema, taskUpdateSchema } from '../../execution/api/task.ts'
import { rememberedSchema, sightingReportSchema } from '../relay/sighting-report.ts'
import { recordedDigestSchema } from '../../coordinator/query/stream/events.ts'
import { replayBeginningSchema, replayReportSchema } from '../replay/replay-report.ts'
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
  Announcement: announcementSchema,
  SightingReport: sightingReportSchema,
  Remembered: rememberedSchema,
  KeyIntroduction: keyIntroductionSchema,
  IntroducedKey: introducedKeySchema,
  ResultDigest: recordedDigestSchema,
  ReplayBeginning: replayBeginningSchema,
  ReplayReport: replayReportSchema,
  QueryListItem: wire.queryListItemSchema,
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

const queryId = path('queryId', 'Identifier from the POST, yyyymmdd_hhmmss_NNNNN_xxxxx')
const taskId = path('taskId', 'Query identifier, stage and task number, with dots between')
const token = path('token', 'Last segment of nextUri')
/** Suffixes of the three header families and their meaning. A POST uses one family, and its answers use the same. */
const sessionParts = {
  User: 'On whose behalf; without it `anonymous`',
  'Original-User': 'Who asked first, when the user was changed since',
  Source: 'Which program asks',
  Catalog: 'Catalog of names that say none',
  Schema: 'Schema of names that say none; needs a catalog',
  Path: 'Where functions are looked for',
  'Time-Zone': 'Zone of the session; without it the zone of the server',
  Language: 'Language tag',
  Session: '`name=value` pairs, URL-encoded, with commas between',
  'Prepared-Statement': '`name=text` pairs, URL-encoded, with commas between',
  'Transaction-Id': 'An open transaction, or NONE',
  Role: '`catalog=role` pairs',
  'Client-Capabilities': 'What the client can read, with commas between',
  'Client-Tags': 'Tags, with commas between',
  'Client-Info': 'Anything the client says of itself',
  'Trace-Token': 'Anything that finds the query again',
  'Resource-Estimate': '`EXECUTION_TIME`, `CPU_TIME`, `PEAK_MEMORY`',
} as const
const sessionHeaders = Object.entries(sessionParts).map(([name, description]) =>
  parameter('header', `X-Engine-${name}`, `${description}. X-Trino-${name} and X-Presto-${name} mean the same`),
)
const integer: Json = { type: 'integer', minimum: 0 }
const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema })
/** Headers of the answers of a query that changed the session, in the family of its POST. */
const sessionChanges = Object.fromEntries(
  Object.entries({
    'Set-Catalog': 'USE: catalog from now on',
    'Set-Schema': 'USE: schema from now on',
    'Set-Path': 'SET PATH',
    'Set-Session': 'SET SESSION: `name=value`, URL-encoded',
    'Clear-Session': 'RESET SESSION: name',
    'Set-Role': 'SET ROLE: `catalog=role`, URL-encoded',
    'Added-Prepare': 'PREPARE: `name=text`, URL-encoded',
    'Deallocated-Prepare': 'DEALLOCATE PREPARE: name',
    'Started-Transaction-Id': 'START TRANSACTION: to be sent from now on',
    'Clear-Transaction-Id': 'COMMIT, ROLLBACK',
    'Set-Authorization-User': 'SET SESSION AUTHORIZATION',
    'Reset-Authorization-User': 'RESET SESSION AUTHORIZATION',
  }).map(([name, description]) => [`X-Engine-${name}`, header(description)]),
)
const internal = [{ clusterSecret: [] }]

const results = json('Status, or rows', ref('QueryResults'), undefined, sessionChanges)
const unknownQuery = problem('No such query')
const sequence = { 'X-Engine-Sequence': header('Event of the query that was the last when it was so', integer) }
const format = query('format', '`json`: a browser, which is sent to the page otherwise, gets the JSON too')
const asOf = query('asOf', 'As it was after an event of the query (its sequence), or at an ISO 8601 time')
const stale = { 'X-Engine-Stale': header('Milliseconds the list may be behind', integer) }
const epoch = parameter(
  'header',
  'X-Engine-Epoch',
  "The coordinator's epoch; a lower one than the worker has seen is 409",
  integer,
)
const staleEpoch = problem('A coordinator with a higher epoch has taken over')

const unlikeTask = problem(
  'A coordinator with a higher epoch has taken over, or a task that is a part of its statement',
)

const page = (description: string): Json => ({
  description,
  content: { 'text/html': { schema: { type: 'string' } } },
})
const logIn = path('logIn', 'From WWW-Authenticate of a 401; not longer than ten minutes')
const unknownLogIn = problem('No address that a 401 gave, or nobody logs in this way here')
const logInFailures = {
  403: page('Not over HTTPS, not from a page of this server, or refused by the identity provider'),
  404: page('This log-in is over, or never was'),
  503: page('The identity provider or Postgres does not answer'),
} as const

/** Killed and preempted take the reason in the body. */
const killing = {
  parameters: [queryId],
  requestBody: {
    description: 'Why, told in the error; may be empty. At most 16 KiB',
    content: { 'text/plain': { schema: { type: 'string' } } },
  },
  responses: {
    202: nothing('The end is in the event log'),
    400: problem('Not UTF-8'),
    403: problem('Not yours to kill'),
    409: problem('It has ended already, or can only finish'),
    410: problem('No such query'),
    413: problem('The message is too long'),
    415: problem('The body has a Content-Encoding'),
    503: problem('Not yet certain'),
  },
} as const

const paths = {
  '/v1/statement': {
    post: {
      summary: 'Submit a statement',
      parameters: sessionHeaders,
      requestBody: { required: true, content: { 'text/plain': { schema: { type: 'string' } } } },
      responses: {
        200: results,
        400: problem('Empty, not UTF-8, or headers of more than one family'),
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
      responses: { 200: results, 404: unknownQuery, 410: problem('A later page was asked for') },
    },
    delete: {
      summary: 'Cancel a statement',
      parameters: [queryId, token, ...sessionHeaders],
      responses: { 204: nothing('Canceled, or ended before'), 404: unknownQuery, 503: problem('Not yet certain') },
    },
  },
  '/v1/stage/{stageId}/{mac}': {
    delete: {
      summary: 'End a stage early: the query goes on with what it has',
      parameters: [path('stageId', 'Query identifier and stage'), path('mac', 'Part of partialCancelUri')],
      responses: { 204: nothing('Done'), 404: unknownQuery, 409: problem('The query writes') },
    },
  },
  '/v1/query': {
    get: {
      summary: 'Open queries and those that ended within 15 minutes, newest first; with filters all others too',
      parameters: [
        query('state', 'One or more states, with commas between'),
        query('user', 'Whose'),
        query('since', 'Created at or after, ISO 8601', { type: 'string', format: 'date-time' }),
        query('q', 'Part of the first 4,096 characters of the text, in either case'),
        query('limit', 'At most so many', { type: 'integer', minimum: 1, maximum: 1000 }),
        query('cursor', 'From the header Link of the page before'),
      ],
      responses: {
        200: json('Queries', listOf('QueryListItem'), undefined, stale),
        400: problem('A parameter is wrong'),
        503: problem('The history cannot be read'),
      },
    },
  },
  '/v1/query/{queryId}': {
    get: {
      summary: 'Everything about a query',
      parameters: [queryId, asOf, format],
      responses: {
        200: json('The query', ref('QueryInfo'), undefined, sequence),
        303: nothing('To a browser: the page about it'),
        400: problem('Not a moment'),
        403: problem('Not yours'),
        404: unknownQuery,
        410: problem('Its data was forgotten'),
        503: problem('Cannot be said now'),
      },
    },
    delete: {
      summary: 'Cancel a query',
      parameters: [queryId],
      responses: {
        204: nothing('Canceled, ended before, or never there'),
        403: problem('Not yours'),
        503: problem('Not yet certain'),
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
      summary: 'Kill a query for the sake of others: it fails with ADMINISTRATIVELY_PREEMPTED and the message',
      ...killing,
    },
  },
  '/v1/query/{queryId}/forget': {
    post: {
      summary: 'Take the data of an ended query out of log and read models',
      description: 'For the cluster secret, with `by`; and for users to whom the rules let write system information',
      parameters: [queryId],
      responses: {
        200: json('Done', { type: 'object', properties: { events: integer } }),
        401: problem('Neither a user nor the cluster secret'),
        403: problem('A user who may not'),
        404: unknownQuery,
        409: problem('It has not ended, or lies in a log that cannot forget'),
      },
    },
  },
  '/v1/query/{queryId}/events': {
    get: {
      summary: 'The events of a query as CloudEvents',
      parameters: [
        queryId,
        query('after', 'Sequence to begin after', integer),
        query('limit', 'At most so many', integer),
      ],
      responses: {
        200: json('Events, oldest first', listOf('CloudEvent'), 'application/cloudevents-batch+json', stale),
        403: problem('Not yours'),
        404: unknownQuery,
        410: problem('Its data was forgotten'),
      },
    },
  },
  '/v1/query/{queryId}/digest': {
    get: {
      summary: 'The digest of the rows of a finished query, by a key of the cluster; for who may have the rows',
      parameters: [queryId],
      responses: {
        200: json('Digest', ref('ResultDigest')),
        403: problem('Not yours'),
        404: problem('No such query, or it has no digest'),
        409: problem('It has not ended'),
        410: problem('Its data was forgotten'),
      },
    },
  },
  '/v1/query/{queryId}/trace': {
    get: {
      summary: 'The trace of an ended query, made of its events, in the JSON of OTLP',
      parameters: [queryId],
      responses: {
        200: json('Resource spans', ref('OtlpTrace')),
        403: problem('Not yours'),
        404: unknownQuery,
        410: problem('Its data was forgotten'),
        409: problem('It has not ended'),
      },
    },
  },
  '/v1/events': {
    get: {
      summary: 'All valid events as server-sent events, from now on or after an id',
      description:
        'Each has its place in the log as `id`, its type as `event` and its CloudEvent as `data`. A client that comes again with the last id it has misses nothing and gets nothing twice, from any coordinator of the log. Without the right to see all, the events of own queries only.',
      parameters: [
        query('query', 'Only of these queries; ids with commas between'),
        query('user', 'Only of queries of these users'),
        query('type', 'Only of these types: `QueryFinished` or `quipu.query.finished`'),
        query('state', 'Only of queries that are in one of these states after the event'),
        query('after', 'An id, or `beginning`; the header comes first'),
        parameter('header', 'Last-Event-ID', 'The last id that was received'),
      ],
      responses: {
        200: json('Events without end; a comment every 15 seconds', { type: 'string' }, 'text/event-stream'),
        400: problem('A parameter is wrong'),
        403: problem('Not yours'),
        404: unknownQuery,
        410: problem('The log ends before that id'),
        429: problem('Too many readers'),
        503: problem('The event log does not answer, or the coordinator is about to end'),
      },
    },
  },
  '/v1/system/sightings': {
    post: {
      summary: 'A coordinator that follows tells the one that writes whom it has let in and refused, and how often',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: ref('SightingReport') },
        },
      },
      responses: {
        200: json('What is remembered of these failures', ref('Remembered')),
        400: problem('Not what a coordinator tells'),
        401: problem('Not from a coordinator'),
      },
    },
  },
  '/v1/system/anchor-key': {
    post: {
      summary: 'A coordinator that follows shows its anchor key to the one that writes, and vouches for that one’s key',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: ref('KeyIntroduction') },
        },
      },
      responses: {
        200: json('The key of the one that writes', ref('IntroducedKey')),
        400: problem('Not what a coordinator tells'),
        401: problem('Not from a coordinator'),
        403: problem('The key does not prove that it belongs to this cluster'),
      },
    },
  },
  '/v1/system/rebuilt': {
    post: {
      summary: 'The command that rebuilt the read models tells of it',
      security: internal,
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { type: 'object', properties: { events: integer, milliseconds: integer } } },
        },
      },
      responses: {
        204: nothing('Recorded'),
        400: problem('Not a rebuild'),
        401: problem('Without the cluster secret'),
      },
    },
  },
  '/v1/replay': {
    post: {
      summary: 'A replay of recorded statements begins: it is in the record before its first statement runs',
      requestBody: { required: true, content: { 'application/json': { schema: ref('ReplayBeginning') } } },
      responses: {
        200: json('Recorded', { type: 'object', properties: { replayId: { type: 'string' } } }),
        400: problem('Not a replay'),
        401: problem('Nobody'),
        403: problem('Who may run nothing'),
        429: problem('Too many replays of this user in a minute'),
      },
    },
  },
  '/v1/replay/{replayId}': {
    put: {
      summary: 'How far a replay is, and how it ended',
      parameters: [path('replayId', 'Of the answer to its beginning')],
      requestBody: { required: true, content: { 'application/json': { schema: ref('ReplayReport') } } },
      responses: {
        204: nothing('Recorded, or told too soon after the last time'),
        400: problem('Not a report'),
        401: problem('Nobody'),
        403: problem('Who may run nothing'),
        404: problem('Not a replay of this user'),
        409: problem('It has ended'),
        429: problem("Too much is told of this user's replays in a minute"),
      },
    },
  },
  '/v1/resourceGroupState': {
    get: {
      summary: 'The resource groups at the top',
      responses: { 200: json('Groups', listOf('ResourceGroupInfo')) },
    },
  },
  '/v1/resourceGroupState/{group}': {
    get: {
      summary: 'A resource group, with what runs in it as far as who asks may see it',
      parameters: [path('group', 'Its names from the top, a segment of the path each')],
      responses: { 200: json('The group', ref('ResourceGroupInfo')), 404: problem('There is no such group') },
    },
  },
  '/v1/node': {
    get: {
      summary: 'The workers known, with decaying counters',
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
      summary: 'Have a worker take no new tasks, and end when nobody needs those that it has',
      description:
        'At the coordinator that writes the log. For the cluster secret, with `by`; and for users to whom the rules let write system information',
      parameters: [path('nodeId', 'Which')],
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
        200: json('It takes no new tasks', {
          type: 'object',
          properties: { nodeId: { type: 'string' }, uri: { type: 'string' }, state: { type: 'string' } },
        }),
        400: problem('Another state'),
        401: problem('Neither a user nor the cluster secret'),
        403: problem('A user who may not'),
        404: problem('There is no such worker'),
        503: problem('The worker does not answer, or the event log'),
      },
    },
  },
  '/v1/announcement': {
    put: {
      summary: 'A worker tells that it is there, each second',
      security: internal,
      requestBody: { required: true, content: { 'application/json': { schema: ref('Announcement') } } },
      responses: {
        204: nothing('Heard'),
        400: problem('Not an announcement'),
        401: problem('Without the cluster secret'),
      },
    },
  },
  '/v1/announcement/{nodeId}': {
    delete: {
      summary: 'A worker leaves',
      security: internal,
      parameters: [path('nodeId', 'Which')],
      responses: { 204: nothing('Gone'), 401: problem('Without the cluster secret') },
    },
  },
  '/v1/task': {
    get: {
      summary: 'Every task known to the server',
      parameters: [query('since', 'Internal: wait for tasks that changed since a version')],
      responses: { 200: json('Tasks', listOf('TaskInfo')), 401: problem('Without the cluster secret') },
    },
    delete: {
      summary: 'Internal, of a worker: tasks that ended queries leave behind; unknown ones are gone already',
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
        204: nothing('Gone'),
        400: problem('Not a list of tasks'),
        401: problem('Without the cluster secret'),
        405: problem('Asked of a coordinator'),
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
        400: problem('Not a moment, or asked of a worker'),
        404: problem('No such task, or not then'),
        503: problem('What was then cannot be said now'),
      },
    },
    post: {
      summary: 'Create or update a task',
      security: internal,
      parameters: [taskId, epoch],
      requestBody: { required: true, content: { 'application/json': { schema: ref('TaskUpdate') } } },
      responses: {
        200: json('The task', ref('TaskInfo')),
        400: problem('Not a task update'),
        401: problem('Without the cluster secret'),
        404: problem('Asked of a coordinator'),
        409: staleEpoch,
      },
    },
    delete: {
      summary: 'Delete a task',
      security: internal,
      parameters: [taskId],
      responses: {
        200: json('The task at its end', ref('TaskInfo')),
        404: problem('No such task'),
        409: staleEpoch,
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}/{token}': {
    get: {
      summary: 'A page of a task',
      security: internal,
      parameters: [
        taskId,
        path('outputId', 'Output buffer'),
        path('token', 'Number of the page'),
        epoch,
        parameter('header', 'X-Engine-Max-Wait', 'How long to wait for the page, `500ms`'),
        parameter(
          'header',
          'X-Engine-Acknowledge',
          'Pages before this one may go; fetching alone lets none go',
          integer,
        ),
      ],
      responses: {
        200: json('Rows', { type: 'array' }, undefined, {
          'X-Engine-Task-Instance-Id': header('Of the process that holds the task'),
          'X-Engine-Page-Token': header('Number of this page', integer),
          'X-Engine-Page-Next-Token': header('Number to ask for next', integer),
          'X-Engine-Buffer-Complete': header('`true`: nothing follows'),
          'X-Engine-Page-Sha256': header("SHA-256 of the page's bytes"),
        }),
        204: nothing('Not there yet, or nothing follows'),
        404: problem('No such task, or no such page'),
        409: unlikeTask,
        410: problem('The page was acknowledged'),
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}': {
    delete: {
      summary: 'Drop output of a task',
      security: internal,
      parameters: [taskId, path('outputId', 'Output buffer'), query('before', 'Only pages before this one', integer)],
      responses: { 204: nothing('Dropped'), 404: problem('No such task'), 409: unlikeTask },
    },
  },
  '/v1/info': {
    get: { summary: 'What this server is', responses: { 200: json('The server', ref('ServerInfo')) } },
  },
  '/v1/status': {
    get: { summary: 'How this server does', responses: { 200: json('Its state', ref('ServerStatus')) } },
  },
  '/oauth2/token/initiate/{logIn}': {
    get: {
      summary: 'To a user: which program asks to be logged in, from where',
      parameters: [logIn],
      responses: { 200: page('A form that sends the POST'), ...logInFailures },
    },
    post: {
      summary: 'The user confirms; his browser goes on to the identity provider',
      parameters: [logIn],
      responses: {
        200: page('Leads to the identity provider'),
        ...logInFailures,
        409: page('The log-in has come to its end'),
        429: page('Too many log-ins are under way'),
      },
    },
  },
  '/oauth2/revoke': {
    post: {
      summary: 'A program logs out (RFC 7009): its token, and those that would follow it, are none any more',
      requestBody: {
        required: true,
        content: {
          'application/x-www-form-urlencoded': {
            schema: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
          },
        },
      },
      responses: {
        200: nothing('It is none, or was none'),
        400: problem('Not UTF-8'),
        403: problem('Not over HTTPS'),
        413: problem('Too long'),
        415: problem('Not a form'),
        503: problem('Postgres does not answer'),
      },
    },
  },
  '/oauth2/callback': {
    get: {
      summary: 'Where the identity provider sends the browser back to',
      parameters: [
        query('state', 'Which log-in'),
        query('code', "The provider's code"),
        query('iss', 'Which provider'),
        query('error', 'Why there is no code'),
        query('error_description', 'The same in words'),
      ],
      responses: {
        200: page('Logged in'),
        400: page('Of another browser, over, or used before'),
        ...logInFailures,
        409: page('The program does not wait any more'),
      },
    },
  },
  '/oauth2/token/{logIn}': {
    get: {
      summary: 'The token of a program whose user logs in; waits ten seconds for it, and gives it once',
      parameters: [logIn],
      responses: {
        200: json('One of the three', {
          type: 'object',
          properties: {
            token: { type: 'string', description: 'To be sent as `Authorization: Bearer`' },
            error: { type: 'string' },
            nextUri: { type: 'string', description: 'Nothing yet: ask there' },
          },
        }),
        403: problem('Not over HTTPS'),
        404: unknownLogIn,
        503: problem('Postgres does not answer, or too many wait'),
      },
    },
    delete: {
      summary: 'The program has what it wanted, or does not want it any more',
      parameters: [logIn],
      responses: { 204: nothing('Nothing is kept'), 404: unknownLogIn, 503: problem('Postgres does not answer') },
    },
  },
  '/metrics': {
    get: {
      summary: 'Figures for Prometheus',
      responses: { 200: json('OpenMetrics text', { type: 'string' }, 'application/openmetrics-text') },
    },
  },
  '/openapi.json': {
    get: { summary: 'This document', responses: { 200: json('OpenAPI 3.1', { type: 'object' }) } },
  },
} as const satisfies Json

/** Refusals that any endpoint can return. */
const refusals = {
  BadRequest: [400, problem('Target, headers or body cannot be read')],
  Unauthenticated: [401, problem('Who asks is not known: WWW-Authenticate has the ways to log in')],
  Forbidden: [403, problem('He may not, a page of another site asks, or a secret came over plain HTTP')],
  TooManyRequests: [
    429,
    problem('Too many log-ins or reads at once, or too many that failed: Retry-After says when to come again'),
  ],
  TooManyHeaders: [431, problem('Too many headers, or too long ones')],
  Unavailable: [503, problem('It starts, or what it needs does not answer: Retry-After says when to come again')],
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
    paths: Object.fromEntries(Object.entries(paths).map(([path, operations]) => [path, withRefusals(operations)])),
    components: {
      responses: Object.fromEntries(Object.entries(refusals).map(([name, [, response]]) => [name, response])),
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
      ),
      securitySchemes: { clusterSecret: { type: 'http', scheme: 'bearer' } },
    },
  }
}
