import type { QueryClient } from '@tanstack/react-query'
import { quotedName, readRows } from './read-rows.ts'
import { EMPTY_SESSION } from './session.ts'

/** Names of the server, for completion. A name that does not exist has nothing below it. */
export interface Metadata {
  catalogs(): Promise<readonly string[]>
  schemas(catalog: string): Promise<readonly string[]>
  tables(catalog: string, schema: string): Promise<readonly string[]>
  columns(catalog: string, schema: string, table: string): Promise<readonly NamedType[]>
  functions(): Promise<readonly string[]>
}

interface NamedType {
  readonly name: string
  readonly type: string
}

/** Names stay valid for this long: each is read by a statement. */
const VALID_MS = 5 * 60_000

/** Reads names by SHOW statements, each once in five minutes. The server shows the names that the user may see. */
export function createMetadata(client: QueryClient): Metadata {
  const show = (sql: string) =>
    client.fetchQuery({
      queryKey: ['metadata', sql],
      staleTime: VALID_MS,
      gcTime: VALID_MS,
      async queryFn({ signal }): Promise<readonly (readonly string[])[]> {
        // A catalog or schema that does not exist, or that the user may not see, has no names.
        const rows = await readRows(sql, EMPTY_SESSION, { source: 'metadata', signal }).catch(() => [])
        return rows.map((row) => row.map(String))
      },
    })
  const firsts = async (sql: string) => (await show(sql)).map(([name = '']) => name)
  return {
    catalogs: () => firsts('SHOW CATALOGS'),
    schemas: (catalog) => firsts(`SHOW SCHEMAS FROM ${quotedName(catalog)}`),
    tables: (catalog, schema) => firsts(`SHOW TABLES FROM ${quotedName(catalog, schema)}`),
    async columns(catalog, schema, table) {
      const rows = await show(`SHOW COLUMNS FROM ${quotedName(catalog, schema, table)}`)
      return rows.map(([name = '', type = '']) => ({ name, type }))
    },
    async functions() {
      return [...new Set(await firsts('SHOW FUNCTIONS'))]
    },
  }
}
