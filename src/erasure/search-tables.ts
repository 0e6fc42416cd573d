import type { QueryRows } from '../events/projection.ts'
import type { Remainder } from './erasure-store.ts'
import { createPauses } from './pauses.ts'
import { PAGES_KEPT_MS } from './search-logs.ts'
import { CODED, PACKED, type SubjectSearch } from './subject.ts'

/** Runs work in a read-only transaction on one connection. Its locks delay no other process for longer than one table. */
export type TableRows = <T>(work: (query: QueryRows) => Promise<T>) => Promise<T>

/** Rows in memory at once; a row may have megabytes. */
const ROWS = 50

const PAGES = 'quipu_log.result_pages'

interface Table {
  /** Quoted, with its schema. */
  readonly name: string
  /** The table that this one is a partition of, or the table itself. */
  readonly root: string
  readonly columns: readonly string[]
}

/** Searches every column of every table of the database that Quipu may read, also in packed texts. */
export async function searchTables(tables: TableRows, search: SubjectSearch): Promise<readonly Remainder[]> {
  const found = new Map<string, number>()
  for (const table of await tables(tablesIn)) {
    const rows = await tables((query) => foundIn(query, table, search))
    found.set(table.root, (found.get(table.root) ?? 0) + rows)
  }
  const until = (found.get(PAGES) ?? 0) > 0 ? await tables(pagesLeaveAt) : undefined
  return [...found].map(([root, count]) => ({
    location: `table ${root}`,
    found: count,
    ...(root === PAGES && until !== undefined && { until }),
  }))
}

async function tablesIn(query: QueryRows): Promise<readonly Table[]> {
  const rows = await query(
    `select format('%I.%I', n.nspname, c.relname) as name,
       coalesce((select format('%I.%I', pn.nspname, p.relname) from pg_inherits i
         join pg_class p on p.oid = i.inhparent join pg_namespace pn on pn.oid = p.relnamespace
         where i.inhrelid = c.oid limit 1), format('%I.%I', n.nspname, c.relname)) as root,
       (select array_agg(case a.atttypid when 'bytea'::regtype
           then format('encode(%I, ''escape'')', a.attname) else format('%I::text', a.attname) end order by a.attnum)
         from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
       and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
     order by 1`,
    [],
  )
  return rows.map(({ name, root, columns }) => ({
    name: String(name),
    root: String(root),
    columns: (columns ?? []) as readonly string[],
  }))
}

async function foundIn(query: QueryRows, { name, columns }: Table, search: SubjectSearch): Promise<number> {
  // A partition may have been dropped since the tables were listed.
  const [there] = await query('select to_regclass($1) is not null as there', [name])
  if (columns.length === 0 || there?.['there'] !== true) return 0
  const pause = createPauses()
  let found = 0
  const text = `concat_ws(E'\\n', variadic array[${columns.join(', ')}])`
  const inBytes = search.spellings.map(escapedBytes).filter((escaped) => !search.spellings.includes(escaped))
  await query(
    // Without an offset, Postgres would make the text anew for each comparison. The expression is slow, and few texts have
    // a character that begins a code.
    `declare found no scroll cursor for select text from (select ${text} as text from ${name} offset 0) rows
     where exists (select from unnest($1::text[]) spelling where position(spelling in text) > 0)
       or (position('%' in text) > 0 or position('\\u' in text) > 0) and text ~ $2`,
    [[...search.spellings, ...inBytes, PACKED], CODED],
  )
  for (;;) {
    const rows = await query(`fetch ${ROWS} from found`, [])
    for (const { text: row } of rows) {
      if (search.isIn(String(row)) || inBytes.some((escaped) => String(row).includes(escaped))) found++
      await pause()
    }
    if (rows.length < ROWS) break
  }
  await query('close found', [])
  return found
}

/** A text as Postgres prints its bytes in the format `escape`. */
function escapedBytes(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      if (byte === 0x5c) return '\\\\'
      return byte === 0 || byte > 0x7f ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte)
    })
    .join('')
}

/** When the last small result page is dropped, ISO UTC. */
async function pagesLeaveAt(query: QueryRows): Promise<string | undefined> {
  const [row] = await query(`select max(created) as last from ${PAGES}`, [])
  const last = row?.['last']
  return last instanceof Date ? new Date(last.getTime() + PAGES_KEPT_MS).toISOString() : undefined
}
