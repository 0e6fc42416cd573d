import { sortNames } from '../../../readmodels/queries/query-order.ts'
import {
  ref,
  arrayOf,
  json,
  nothing,
  problemOf,
  parameter,
  query,
  queryId,
  countSchema,
  unknownQuery,
  uncertain,
  sequence,
  asOf,
  staleSearch,
  eventPage,
  cloudEvents,
} from './document-parts.ts'

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
  query(
    'q',
    'Part of the first 4,096 characters of the text; upper and lower case are equal. Without three letters or digits in a row, only about the newest 20,000 queries that match the other filters are searched: those since the time in the header X-Engine-Searched-Since',
  ),
]

const notAllowed = problemOf('The user may not see or change this query')

const format = query('format', '`json`: a browser gets the JSON, too; without it a browser is redirected to the page')

/** Killed and preempted take the reason in the body. */
const killing = {
  parameters: [queryId],
  requestBody: {
    description: 'The reason, shown in the error; it may be empty. At most 16 KiB',
    content: { 'text/plain': { schema: { type: 'string' } } },
  },
  responses: {
    202: nothing('The end of the query is recorded in the event log'),
    400: problemOf('The message is not UTF-8'),
    403: problemOf('The user may not kill this query'),
    409: problemOf('The query has already ended, or can only finish'),
    410: problemOf('The query does not exist'),
    413: problemOf('The message is too long'),
    415: problemOf('The body has a Content-Encoding'),
    503: uncertain,
  },
} as const

/** The operations on queries, and the feed of events. */
export const queryOperations = {
  '/v1/query': {
    get: {
      summary:
        'Open queries and queries that ended in the last 15 minutes, newest first; with filters also older queries',
      parameters: [
        ...ofQueries,
        query('limit', 'Most queries in the answer', { type: 'integer', minimum: 1, maximum: 1000 }),
        query('sort', 'What the list is sorted by: by default the time of creation', { enum: [...sortNames] }),
        query('order', '`desc`: the largest or newest first, the default', { enum: ['asc', 'desc'] }),
        query('cursor', 'Cursor from the header Link of the page before'),
      ],
      responses: {
        200: json('Queries', arrayOf('QueryListItem'), undefined, staleSearch),
        400: problemOf('A parameter is invalid'),
        503: problemOf('The history cannot be read'),
      },
    },
  },
  '/v1/query/totals': {
    get: {
      summary: 'Totals of the queries that GET /v1/query lists with the same filters, together and by state',
      parameters: ofQueries,
      responses: {
        200: json('Totals', ref('TotalsInfo'), undefined, staleSearch),
        400: problemOf('A parameter is invalid'),
        503: problemOf('The history cannot be read'),
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
        400: problemOf('asOf is neither a sequence nor a time'),
        403: notAllowed,
        404: unknownQuery,
        410: problemOf('The data of the query was forgotten'),
        503: problemOf('The history cannot be read now'),
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
        200: json('How many events lost their data', { type: 'object', properties: { events: countSchema } }),
        401: problemOf('The request has neither a user nor the cluster secret'),
        403: problemOf('The user may not do this'),
        404: unknownQuery,
        409: problemOf('The query has not ended, or the log cannot forget'),
      },
    },
  },
  '/v1/query/{queryId}/events': {
    get: {
      summary: 'The events of a query as CloudEvents',
      parameters: [queryId, ...eventPage],
      responses: {
        200: cloudEvents,
        403: notAllowed,
        404: unknownQuery,
        410: problemOf('The data of the query was forgotten'),
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
        404: problemOf('The query does not exist, or has no digest'),
        409: problemOf('The query has not ended'),
        410: problemOf('The data of the query was forgotten'),
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
        410: problemOf('The data of the query was forgotten'),
        409: problemOf('The query has not ended'),
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
        400: problemOf('A parameter is invalid'),
        403: notAllowed,
        404: unknownQuery,
        410: problemOf('The log ends before this id'),
        429: problemOf('Too many readers'),
        503: problemOf('The event log does not answer, or the coordinator is about to stop'),
      },
    },
  },
} as const
