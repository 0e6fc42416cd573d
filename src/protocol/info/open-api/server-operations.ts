import { ref, arrayOf, json, nothing, problemOf, path, countSchema, internal } from './document-parts.ts'

/** The operations on the server itself: groups, replays, state and metrics. */
export const serverOperations = {
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
        400: problemOf('The body is not a valid report of a coordinator'),
        401: problemOf('The request is not from a coordinator'),
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
        400: problemOf('The body is not a valid report of a coordinator'),
        401: problemOf('The request is not from a coordinator'),
        403: problemOf('The key does not prove that it belongs to this cluster'),
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
          'application/json': {
            schema: { type: 'object', properties: { events: countSchema, milliseconds: countSchema } },
          },
        },
      },
      responses: {
        204: nothing('Recorded'),
        400: problemOf('The body is not a report of a rebuild'),
        401: problemOf('The request has no cluster secret'),
      },
    },
  },
  '/v1/system/verified': {
    post: {
      summary: 'The command that verified the event log reports its result',
      security: internal,
      requestBody: { required: true, content: { 'application/json': { schema: ref('AuditReport') } } },
      responses: {
        204: nothing('Recorded'),
        400: problemOf('The body is not a report of an audit'),
        401: problemOf('The request has no cluster secret'),
      },
    },
  },
  '/v1/audit': {
    get: {
      summary: 'The last audits of the event log and their results, its last anchors, and the keys of anchors',
      responses: {
        200: json('Audits, anchors and keys', ref('AuditInfo')),
        403: problemOf('The user may not read system information'),
        503: problemOf('The history cannot be read'),
      },
    },
  },
  '/v1/replay': {
    post: {
      summary: 'Record that a replay begins, before its first statement runs',
      requestBody: { required: true, content: { 'application/json': { schema: ref('ReplayBeginning') } } },
      responses: {
        200: json('Recorded', { type: 'object', properties: { replayId: { type: 'string' } } }),
        400: problemOf('The body is not a valid replay'),
        401: problemOf('The request has no valid credential'),
        403: problemOf('The user may not run statements'),
        429: problemOf('This user started too many replays within a minute'),
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
        400: problemOf('The body is not a valid report'),
        401: problemOf('The request has no valid credential'),
        403: problemOf('The user may not run statements'),
        404: problemOf('This user has no such replay'),
        409: problemOf('The replay has ended'),
        429: problemOf('Too many reports about replays of this user within a minute'),
      },
    },
  },
  '/v1/resourceGroupState': {
    get: {
      summary: 'The root resource groups',
      responses: { 200: json('Groups', arrayOf('ResourceGroupInfo')) },
    },
  },
  '/v1/resourceGroupState/{group}': {
    get: {
      summary: 'A resource group, with its running queries that the user may see',
      parameters: [path('group', 'Names of the group from the root, each a segment of the path')],
      responses: { 200: json('The group', ref('ResourceGroupInfo')), 404: problemOf('The group does not exist') },
    },
  },
  '/v1/info': {
    get: { summary: 'Version and role of this server', responses: { 200: json('The server', ref('ServerInfo')) } },
  },
  '/v1/status': {
    get: { summary: 'Health of this server', responses: { 200: json('Its state', ref('ServerStatus')) } },
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
} as const
