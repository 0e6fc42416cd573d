import { Client as PrestoClient } from 'presto-client'
import { finished } from './real-clients.ts'

type Rows = unknown[][]

/** The rows of a statement in the schema `tpch.tiny`, as presto-client for JavaScript reads them. */
export async function prestoClientRows(base: string, engine: 'presto' | 'trino', query: string): Promise<Rows> {
  const { hostname: host, port } = new URL(base)
  const names = { user: 'old', catalog: 'tpch', schema: 'tiny' }
  const client = new PrestoClient({ host, port: Number(port), ...names, engine, checkInterval: 20 })
  const rows: Rows = []
  await new Promise<void>((resolve, reject) =>
    client.execute({
      query,
      data: (error, page) => void (error ? reject(error) : rows.push(...page)),
      success: resolve,
      error: reject,
    }),
  )
  return rows
}

/** The rows of a statement in the schema `tpch.tiny`, as curl with X-Engine headers reads them. */
export async function curlRows(base: string, sql: string): Promise<Rows> {
  const sent = ['User: me', 'Catalog: tpch', 'Schema: tiny'].flatMap((header) => ['-H', `X-Engine-${header}`])
  const posted = await finished('curl', ['-s', ...sent, '--data', sql, `${base}/v1/statement`])
  let answer = JSON.parse(posted.stdout) as { nextUri?: string; data?: Rows }
  const rows: Rows = []
  while (answer.nextUri) {
    answer = JSON.parse((await finished('curl', ['-s', answer.nextUri])).stdout) as typeof answer
    rows.push(...(answer.data ?? []))
  }
  return rows
}
