import {
  ref,
  json,
  nothing,
  problemOf,
  parameter,
  path,
  queryId,
  header,
  unknownQuery,
  uncertain,
} from './document-parts.ts'

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

const results = json('The status of the statement, or its rows', ref('QueryResults'), undefined, sessionChanges)

/** The operations on statements of clients. */
export const statementOperations = {
  '/v1/statement': {
    post: {
      summary: 'Submit a statement',
      parameters: sessionHeaders,
      requestBody: { required: true, content: { 'text/plain': { schema: { type: 'string' } } } },
      responses: {
        200: results,
        400: problemOf('The statement is empty or not UTF-8, or the headers are of more than one family'),
        413: problemOf('The statement is too long'),
        415: problemOf('The body has a Content-Encoding'),
        429: problemOf('Too many open queries'),
        503: problemOf('The event log does not answer'),
      },
    },
  },
  '/v1/statement/{queryId}/{token}': {
    get: {
      summary: 'Status of a statement, or its next rows',
      parameters: [queryId, token],
      responses: { 200: results, 404: unknownQuery, 410: problemOf('The client has already requested a later page') },
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
        409: problemOf('The query writes data, so it cannot end early'),
      },
    },
  },
} as const
