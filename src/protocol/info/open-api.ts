import { z } from 'zod'
import { routes, type MethodOf, type RoutePath } from '../edge/routes.ts'
import { namedSchemas, problemOf, type Json } from './open-api/document-parts.ts'
import { statementOperations } from './open-api/statement-operations.ts'
import { queryOperations } from './open-api/query-operations.ts'
import { serverOperations } from './open-api/server-operations.ts'
import { nodeOperations } from './open-api/node-operations.ts'
import { taskOperations } from './open-api/task-operations.ts'
import { erasureOperations } from './open-api/erasure-operations.ts'
import { logInOperations } from './open-api/log-in-operations.ts'
import { actOperations } from './open-api/act-operations.ts'

const operations = {
  ...statementOperations,
  ...queryOperations,
  ...actOperations,
  ...serverOperations,
  ...nodeOperations,
  ...erasureOperations,
  ...taskOperations,
  ...logInOperations,
} as const satisfies { readonly [P in RoutePath]: Readonly<Record<Lowercase<MethodOf<P>>, Json>> }

/** Refusals that any endpoint can return. */
const refusals = {
  BadRequest: [400, problemOf('The target, the headers or the body cannot be read')],
  Unauthenticated: [401, problemOf('The request has no valid credential: WWW-Authenticate lists the ways to log in')],
  Forbidden: [
    403,
    problemOf(
      'The user may not do this, the request came from a page of another site, or a secret came over plain HTTP',
    ),
  ],
  TooManyRequests: [
    429,
    problemOf('Too many log-ins or reads at once, or too many failed log-ins: Retry-After says when to try again'),
  ],
  TooManyHeaders: [431, problemOf('There are too many headers, or they are too long')],
  Unavailable: [
    503,
    problemOf('The server starts, or a service that it needs does not answer: Retry-After says when to try again'),
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
  for (const [id, schema] of Object.entries(namedSchemas)) registry.add(schema, { id })
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
