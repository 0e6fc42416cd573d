import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { waitUntil } from '../support/quipu-process.ts'
import { serverOfFile, type ServerOfFile } from '../support/server-of-file.ts'
import { raw, run, trinoHeaders, type Ran, type StatementJson } from '../support/statement-client.ts'
import { CLIENT_TIMEOUT_MS } from './trino-server.ts'

export const trinoUrl = inject('trinoUrl')

/** The source of clients whose statements all go to Trino, also those without a table. */
export const EVERYTHING = 'everything'
export const headers = { ...trinoHeaders, 'x-trino-source': EVERYTHING }

/**
 * Starts a Quipu in front of Trino for all tests of a file. All catalogs but `local` are those of Trino.
 * @param cluster members of the cluster file that differ
 * @param env further settings of Quipu
 */
export function gatewayOfFile(
  cluster: (folder: string) => Readonly<Record<string, unknown>> = () => ({}),
  env: Readonly<Record<string, string>> = {},
): ServerOfFile {
  return serverOfFile('error', ({ folder }) => {
    const write = (path: string, content: unknown): string => {
      const file = join(folder, path)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(file, JSON.stringify(content), { mode: 0o644 })
      return file
    }
    write('catalogs/local.json', { connector: 'memory' })
    write('clusters/trino-a.json', {
      url: trinoUrl,
      group: 'big',
      catalogs: ['tpch', 'memory', 'iceberg'],
      clientTimeout: `${CLIENT_TIMEOUT_MS / 1000}s`,
      ...cluster(folder),
    })
    const rules = [{ name: 'all', match: { source: EVERYTHING }, route: { group: 'big' }, unchecked: true }]
    return {
      QUIPU_CATALOG_DIR: join(folder, 'catalogs'),
      QUIPU_CLUSTERS_DIR: join(folder, 'clusters'),
      QUIPU_ROUTING_RULES_FILE: write('routing.json', { rules }),
      ...env,
    }
  })
}

export async function untilHealthy({ url }: ServerOfFile): Promise<void> {
  await waitUntil('the cluster is healthy', async () => (await raw(`${url}/v1/cluster`)).text.includes('"HEALTHY"'))
}

/**
 * The answer that a client gets, without its id, addresses and figures. A failed statement has only its error here,
 * because Quipu names no columns and no kind of change with an error.
 */
export function seen({ rows, columns, error, answers, last }: Ran): Readonly<Record<string, unknown>> {
  if (error) {
    const { errorName, errorCode, errorType, errorLocation, message } = error
    return { errorName, errorCode, errorType, errorLocation, message }
  }
  const {
    updateType,
    updateCount,
    warnings,
  }: StatementJson & {
    readonly updateCount?: unknown
    readonly warnings?: unknown
  } = answers.at(-1)!
  return { columns, rows, updateType, updateCount, warnings, sessionChanges: changesIn(last.headers) }
}

/** The headers of an answer that change the session of the client. */
export function changesIn(answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(answer).filter(([name]) => name.startsWith('x-trino-')))
}

/** Runs a statement at Trino directly and through the gateway. */
export async function both(
  gateway: ServerOfFile,
  sql: string,
  sent: Readonly<Record<string, string>> = headers,
): Promise<{ readonly direct: Ran; readonly through: Ran }> {
  return { direct: await run(trinoUrl, sql, sent), through: await run(gateway.url, sql, sent) }
}
