import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import {
  CHANGED,
  createChanged,
  ownerOf,
  queryOfView,
  refusals,
  swappedTable,
  textOfChange,
  viewOf,
  type DrawnChange,
} from './drawn-changes.ts'
import type { WriteOutcome } from './writing-client.ts'

/** Reads rows of the server; `undefined` where the table does not exist. */
export type ReadTable = (table: string, owner: string) => Promise<readonly string[] | undefined>

/**
 * Repeats the changes of each writer in DuckDB, and compares its tables with those of the server. A change with an
 * unknown end was made or not: from then on there is a state for each, and one of them must be the server's.
 * @param outcomes of all writers, in the order of each
 * @returns a line for each violation
 */
export async function checkChanges(outcomes: readonly WriteOutcome[], read: ReadTable): Promise<string[]> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    const wrong: string[] = []
    for (const client of new Set(outcomes.map((one) => one.client))) {
      const own = outcomes.filter((one) => one.client === client)
      wrong.push(...(await checkClient(new PossibleStates(connection, ownerOf(client)), own, read)))
    }
    return wrong
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function checkClient(
  states: PossibleStates,
  outcomes: readonly WriteOutcome[],
  read: ReadTable,
): Promise<string[]> {
  const { owner } = states
  await states.begin()
  for (const { write, end, why, count, behaviour, id } of outcomes) {
    if (write.kind !== 'change') continue
    const { change } = write
    if (await states.follow(change, { end, why, count })) continue
    const how = `${end}${why === undefined ? '' : ` (${why})`}${count === undefined ? '' : `, count ${count}`}`
    return [`${textOfChange(change, owner, '')} (${behaviour}) ${id ?? ''} is ${how}: no possible state gives that`]
  }
  const tables = [CHANGED, viewOf(owner), ...['', '_tmp', '_old'].map((suffix) => swappedTable(owner) + suffix)]
  const found = new Map<string, readonly string[] | undefined>()
  for (const table of tables) found.set(table, await read(table, owner))
  const difference = await states.difference(found)
  return difference === undefined ? [] : [`tables of ${owner}: ${difference}`]
}

interface Ending {
  readonly end: WriteOutcome['end']
  /** The name of the error. */
  readonly why: string | undefined
  readonly count: number | undefined
}

/** The effect of a change in the model: the number of changed rows, or the name of Trino's error. */
type Effect = { readonly count: number | undefined; readonly changesNothing?: boolean } | { readonly error: string }

/** The model has a table with this suffix for each materialized view that exists. */
const DEFINED = '_defined'

const MOST_STATES = 64

/** The states that the tables of one writer may have; each is a schema in DuckDB. */
class PossibleStates {
  readonly owner: string
  readonly #connection: DuckDBConnection
  #schemas: string[] = []
  #made = 0

  constructor(connection: DuckDBConnection, owner: string) {
    this.#connection = connection
    this.owner = owner
  }

  async begin(): Promise<void> {
    const schema = await this.#newSchema()
    await this.#connection.run(createChanged(`${schema}.`))
    this.#schemas = [schema]
  }

  /** Makes the change in all states that agree with its end. @returns false when there is none */
  async follow(change: DrawnChange, { end, why, count }: Ending): Promise<boolean> {
    const next: string[] = []
    for (const schema of this.#schemas) {
      if (end === 'not done') {
        if (why === undefined || !refusals.has(why)) next.push(schema)
        else if (sameError(await this.#run(change, await this.#copyOf(schema)), why)) next.push(schema)
        continue
      }
      const copy = await this.#copyOf(schema)
      const effect = await this.#run(change, copy)
      if (end === 'unknown') next.push(schema)
      if ('error' in effect) continue
      // The refresh of a fresh view writes nothing. Whether it is fresh also depends on the rows of other writers.
      const isFresh = count === 0 && effect.changesNothing === true
      if (end === 'unknown' || isFresh || effect.count === count) next.push(copy)
    }
    if (next.length > MOST_STATES) throw new Error('The ends of too many changes are unknown')
    this.#schemas = next
    return next.length > 0
  }

  /** Undefined when the tables are those of a possible state; otherwise how they differ from the last one. */
  async difference(tables: ReadonlyMap<string, readonly string[] | undefined>): Promise<string | undefined> {
    let last: string | undefined
    for (const schema of this.#schemas) {
      last = undefined
      for (const [table, rows] of tables) {
        const expected = await this.#rowsOf(schema, table)
        if (JSON.stringify(expected) === JSON.stringify(rows)) continue
        last = `${table} is ${JSON.stringify(rows)}, not ${JSON.stringify(expected)}`
      }
      if (last === undefined) return undefined
    }
    return last
  }

  async #run(change: DrawnChange, schema: string): Promise<Effect> {
    if (change.operation === 'CREATE VIEW') {
      await this.#connection.run(`CREATE TABLE ${schema}.${change.table}${DEFINED} (w varchar, k integer, v integer)`)
      return { count: undefined }
    }
    if (change.operation === 'REFRESH') return this.#refresh(change.table, schema)
    try {
      const reader = await this.#connection.runAndReadAll(textOfChange(change, this.owner, `${schema}.`))
      const [[rows] = []] = change.operation === 'RENAME' || change.operation === 'DROP' ? [] : reader.getRows()
      return { count: rows === undefined ? undefined : Number(rows) }
    } catch (error) {
      const message = String(error)
      if (/does not exist/.test(message)) return { error: 'TABLE_NOT_FOUND' }
      if (/already exists/.test(message)) return { error: 'TABLE_ALREADY_EXISTS' }
      throw error
    }
  }

  async #refresh(view: string, schema: string): Promise<Effect> {
    if (!(await this.#tables(schema)).includes(view + DEFINED)) return { error: 'TABLE_NOT_FOUND' }
    const before = JSON.stringify(await this.#rowsOf(schema, view))
    await this.#connection.run(`CREATE OR REPLACE TABLE ${schema}.${view} AS ${queryOfView(this.owner, `${schema}.`)}`)
    const rows = (await this.#rowsOf(schema, view))!
    return { count: rows.length, changesNothing: JSON.stringify(rows) === before }
  }

  /** The rows that a reader of the table or the materialized view sees; undefined if there is none. */
  async #rowsOf(schema: string, table: string): Promise<string[] | undefined> {
    const tables = await this.#tables(schema)
    // Before its first refresh, a materialized view is its query.
    const isQuery = !tables.includes(table) && tables.includes(table + DEFINED)
    if (!isQuery && !tables.includes(table)) return undefined
    const source = isQuery ? `(${queryOfView(this.owner, `${schema}.`)})` : `${schema}.${table}`
    const reader = await this.#connection.runAndReadAll(`SELECT k, v FROM ${source} ORDER BY k, v`)
    return reader.getRowsJson().map((row) => JSON.stringify(row))
  }

  async #copyOf(schema: string): Promise<string> {
    const copy = await this.#newSchema()
    for (const table of await this.#tables(schema))
      await this.#connection.run(`CREATE TABLE ${copy}.${table} AS FROM ${schema}.${table}`)
    return copy
  }

  async #tables(schema: string): Promise<string[]> {
    const reader = await this.#connection.runAndReadAll(
      `SELECT table_name FROM information_schema.tables WHERE table_schema = '${schema}'`,
    )
    return reader.getRowsJson().map(([name]) => String(name))
  }

  async #newSchema(): Promise<string> {
    const schema = `${this.owner}_state_${this.#made++}`
    await this.#connection.run(`CREATE SCHEMA ${schema}`)
    return schema
  }
}

function sameError(effect: Effect, name: string): boolean {
  return 'error' in effect && effect.error === name
}
