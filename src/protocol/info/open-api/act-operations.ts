import { arrayOf, countSchema, json, path, problemOf, query, ref } from './document-parts.ts'

const noAdministrator = problemOf('The user may not write system information')

/** The operations on many queries. */
export const actOperations = {
  '/v1/act/preview': {
    post: {
      summary: 'Show which queries an act would be about. Nothing is done with them',
      requestBody: { required: true, content: { 'application/json': { schema: ref('ActPreviewRequest') } } },
      responses: {
        200: json('The number of queries, the first of them, and a token for the act', ref('ActPreview')),
        400: problemOf('The body is not valid, or more queries match than an act may have'),
        403: noAdministrator,
      },
    },
  },
  '/v1/act': {
    get: {
      summary: 'The newest acts',
      parameters: [query('limit', 'Most acts in the answer', countSchema)],
      responses: {
        200: json('Acts, the newest first', arrayOf('ActInfo')),
        403: noAdministrator,
      },
    },
    post: {
      summary: 'Begin an act: kill, hold, release, run again or forget the queries of a preview',
      requestBody: { required: true, content: { 'application/json': { schema: ref('ActRequest') } } },
      responses: {
        200: json('The act is recorded and goes on by itself', ref('ActInfo')),
        400: problemOf('The body is not valid, or the token is not from a preview of this act, filter and user'),
        403: noAdministrator,
        409: problemOf('The preview is too old, or more queries match now'),
        429: problemOf('Too many acts run'),
      },
    },
  },
  '/v1/act/{actId}': {
    get: {
      summary: 'An act and its progress',
      parameters: [path('actId', 'Identifier from the answer to POST /v1/act')],
      responses: {
        200: json('The act', ref('ActInfo')),
        403: noAdministrator,
        404: problemOf('There is no such act'),
        503: problemOf('It is not certain now whether this act exists'),
      },
    },
    delete: {
      summary: 'Stop an act: it begins with no further query, and cancels the queries that it runs again',
      parameters: [path('actId', 'Identifier from the answer to POST /v1/act')],
      responses: {
        200: json('The act, which has ended or ends once the queries in work have an outcome', ref('ActInfo')),
        403: problemOf('The user may not write system information, or another user who sees more began the act'),
        404: problemOf('There is no such act'),
        503: problemOf(
          'The coordinator has not continued the act yet, or it is not certain now whether this act exists',
        ),
      },
    },
  },
} as const
