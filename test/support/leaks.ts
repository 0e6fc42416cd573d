import pg from 'pg'
import { beginning, type Recorded } from '../../src/events/event-log.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import { raw, run } from './statement-client.ts'

/** The matches of a pattern, each once, with the place of the match. */
export type Leaks = readonly string[]

function leaksIn(where: string, text: string, words: RegExp): string[] {
  return [...new Set(text.match(words))].map((word) => `${word} in ${where}`)
}

/** Every event of a log in Postgres, with its data decrypted. */
export async function eventsOf(databaseUrl: string): Promise<readonly Recorded[]> {
  const log = createPostgresEventLog({ connectionString: databaseUrl })
  try {
    await log.open()
    const all: Recorded[] = []
    for (let from = beginning(); ;) {
      const { events, next } = await log.read(from, 500)
      if (events.length === 0) return all
      all.push(...events)
      from = next
    }
  } finally {
    await log.close()
  }
}

/** @param words a pattern with the flag g */
export async function leaksOfLog(databaseUrl: string, words: RegExp): Promise<Leaks> {
  return (await eventsOf(databaseUrl)).flatMap(({ stream, type, data }) =>
    leaksIn(`${type} of ${stream}`, JSON.stringify(data), words),
  )
}

/** Every row of every table as text, with bytes decoded as text. */
export async function leaksOfTables(databaseUrl: string, words: RegExp, skip: readonly string[] = []): Promise<Leaks> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows: columns } = await client.query<{ table: string; column: string; type: string }>(
      `select format('%I.%I', table_schema, table_name) as table, format('%I', column_name) as column, data_type as type
       from information_schema.columns join information_schema.tables using (table_schema, table_name)
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    )
    const found: string[] = []
    for (const { table, column, type } of columns) {
      if (skip.some((name) => table.includes(name))) continue
      const text = type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`
      const { rows } = await client.query<{ value: string }>(
        `select ${text} as value from ${table} where ${text} ~ $1`,
        [words.source],
      )
      for (const { value } of rows) found.push(...leaksIn(`${table}.${column}`, value, words))
    }
    return found
  } finally {
    await client.end()
  }
}

/** All that a server shows of its queries, events and tasks to a client. */
export async function leaksOfResources(url: string, queryIds: readonly string[], words: RegExp): Promise<Leaks> {
  const found: string[] = []
  const look = async (path: string): Promise<void> => {
    const { text } = await raw(`${url}${path}`)
    found.push(...leaksIn(path, text, words))
  }
  for (const id of queryIds)
    for (const path of ['', '/events?limit=1000', '/trace', '?asOf=1', '?asOf=2']) await look(`/v1/query/${id}${path}`)
  for (const path of ['/v1/query?limit=1000', '/v1/task', '/v1/status', '/v1/node', '/metrics']) await look(path)
  found.push(...leaksIn('/v1/events', await feedOf(url), words))
  for (const table of ['queries', 'tasks', 'events', 'operators', 'nodes', 'transactions']) {
    const { rows, error } = await run(url, `SELECT * FROM system.runtime.${table}`)
    if (error) throw new Error(`system.runtime.${table}: ${error.message}`)
    found.push(...leaksIn(`system.runtime.${table}`, JSON.stringify(rows), words))
  }
  return found
}

/** The feed from its beginning up to an event that this call causes. */
async function feedOf(url: string): Promise<string> {
  const { id } = await run(url, 'SELECT 1')
  const abort = new AbortController()
  const answer = await fetch(`${url}/v1/events?after=beginning`, { signal: abort.signal })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of answer.body! as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    if (text.includes(id) && text.slice(text.lastIndexOf(`"subject":"${id}"`)).includes('QueryFinished')) break
    if (text.includes(`${id}/4`)) break
  }
  abort.abort()
  return text
}
