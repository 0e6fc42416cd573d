import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { routeOf } from '../../src/protocol/edge/http-metrics.ts'
import { openApiDocument } from '../../src/protocol/info/open-api.ts'
import { repository } from '../support/repository.ts'

const sources = ['src/protocol', 'src/processes']
  .flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(join(repository, file), 'utf8'))

/** What servers answer, as their modules register it: ids in braces. */
const registered = sources
  .flatMap((text) => [...text.matchAll(/\b(?:resource\(\s*router,|endpoint\(|app\.get\()\s*'([^']+)'/g)])
  .map(([, path]) => path!.replaceAll(/:(\w+)/g, '{$1}'))
  // Pages are no part of the interface.
  .filter((path) => !path.startsWith('/ui'))

const described = Object.keys((openApiDocument('0') as { paths: Readonly<Record<string, unknown>> }).paths)

describe('an endpoint', () => {
  it('that is registered is described in /openapi.json, and none else', () => {
    expect(registered.length).toBeGreaterThan(20)
    expect(described.toSorted()).toEqual([...new Set(registered)].toSorted())
  })

  it('has a route among the figures of requests', () => {
    const routes = described.map((path) => [path, routeOf(path.replaceAll(/\{\w+\}/g, '0'))])
    const merged: Readonly<Record<string, string>> = {
      '/v1/node/failed': '/v1/node',
      '/v1/announcement/{nodeId}': '/v1/announcement',
      '/v1/task/{taskId}/results/{outputId}': '/v1/task/{taskId}/results',
      '/v1/task/{taskId}/results/{outputId}/{token}': '/v1/task/{taskId}/results',
    }
    expect(routes).toEqual(described.map((path) => [path, merged[path] ?? path]))
  })
})
