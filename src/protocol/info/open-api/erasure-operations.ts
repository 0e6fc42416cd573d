import { json, path, problemOf, ref } from './document-parts.ts'

const order = {
  description: 'Exactly one of `user` and `value`. A caller with the cluster secret also sends `by`',
  required: true,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        properties: {
          user: { type: 'string', description: 'Name of a user' },
          value: { type: 'string', description: 'A text with at least three letters or digits' },
          mentions: {
            type: 'boolean',
            description: 'Also queries of others that mention the user, and recorded texts of rule files',
          },
          reason: { type: 'string', description: 'It is recorded; it must not contain the user or the value' },
          by: { type: 'string' },
        },
      },
    },
  },
} as const

const description =
  'Allowed with the cluster secret, and for users who may write system information by the access rules'

const accepted = {
  202: json('It has begun; Location says where its state is', ref('ErasureInfo')),
  400: problemOf('The request names no user and no value, or the reason contains them'),
  401: problemOf('The request has neither a user nor the cluster secret'),
  403: problemOf('The user may not do this'),
  409: problemOf('Another erasure or preview runs'),
} as const

/** The operations on erasures. */
export const erasureOperations = {
  '/v1/erasure': {
    post: {
      summary: 'Erase everything about a user, or everything that contains a value, and search all places afterwards',
      description,
      requestBody: order,
      responses: accepted,
    },
  },
  '/v1/erasure/preview': {
    post: {
      summary: 'Count what an erasure would remove, without removing anything',
      description,
      requestBody: order,
      responses: accepted,
    },
  },
  '/v1/erasure/{erasureId}': {
    get: {
      summary: 'The state of an erasure or of a preview, and its result once it has ended',
      description,
      parameters: [path('erasureId', 'Id of the erasure or of the preview')],
      responses: {
        200: json('The erasure', ref('ErasureInfo')),
        401: problemOf('The request has neither a user nor the cluster secret'),
        403: problemOf('The user may not do this'),
        404: problemOf('There is no such erasure'),
      },
    },
  },
} as const
