import { join } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type { ConnectorContext } from '../spi/connector.ts'
import type { RowGroup } from '../spi/parquet-scan.ts'
import { columnType, type ColumnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import { columnsOfLeaves, columnsTooPrecise, schemaElementSchema } from './parquet-schema.ts'
import { hashFooter, type FileFormat, type LakeFile } from './lake-files.ts'
import { NOTHING_DECLARED, type TableSettings } from './table-settings.ts'
import { namesOf, textColumns, textFacts, type TextFacts } from './text-facts.ts'

export interface FileFacts {
  readonly footer: string
  /** Parquet only. */
  readonly rowGroups: readonly RowGroup[]
  /** The file's own columns, lower case. */
  readonly names: ReadonlySet<string>
  /** Of those, the ones that cannot be read: no column of the table. */
  readonly unread: readonly string[]
  /** Text of the file's own column names and types; tables whose files differ are read by name. */
  readonly shape: string
  /** CSV and JSON only. */
  readonly text?: TextFacts
}

export interface FoundFileColumn extends ColumnType {
  /** As the files name it. */
  readonly source: string
  /** Lower case. */
  readonly name: string
  /** DuckDB's type text. */
  readonly duckdbType: string
}

/** What DuckDB says of files, asked once for each (path, size, mtime). */
export interface FileFactsCache {
  facts(format: FileFormat, files: readonly LakeFile[], settings?: TableSettings): Promise<readonly FileFacts[]>
  /** @param facts of the files, in their order */
  columns(
    format: FileFormat,
    files: readonly LakeFile[],
    facts: readonly FileFacts[],
    settings?: TableSettings,
  ): Promise<readonly FoundFileColumn[]>
}

const MAX_CACHED = 50_000
/** Each holds a window of the file in the engine while it is looked at. */
const TEXTS_AT_ONCE = 4

const rowGroupSchema = z.object({
  file_name: z.string(),
  elements: z.array(schemaElementSchema),
  rows: z.union([z.null(), z.coerce.number()]),
  columns: z.array(z.object({ leaf: z.coerce.number(), bytes: z.coerce.number() })),
})
const describeSchema = z.object({ column_name: z.string(), column_type: z.string() })

export function createFileFactsCache(location: string, ask: ConnectorContext['inspect']): FileFactsCache {
  const inspect = askedAgain(ask)
  const factsByFile = createBoundedMap<Promise<FileFacts>>(MAX_CACHED)
  const columnsByFiles = createBoundedMap<Promise<readonly FoundFileColumn[]>>(1000)

  return {
    facts(format, files, settings = NOTHING_DECLARED) {
      const key = (file: LakeFile): string => keyOf(file) + (format === 'csv' ? settings.key : '')
      const missing = files.filter((file) => factsByFile.get(key(file)) === undefined)
      if (missing.length > 0) {
        const loading = format === 'parquet' ? parquetFacts(missing) : factsOfTexts(format, missing, settings)
        for (const [index, file] of missing.entries()) {
          const fact = loading.then((all) => all[index]!)
          factsByFile.set(key(file), fact)
          // A failure (file half written, engine lost) is not kept: the next query asks again.
          fact.catch(() => factsByFile.delete(key(file)))
        }
      }
      return Promise.all(files.map((file) => factsByFile.get(key(file))!))
    },

    async columns(format, files, facts, settings = NOTHING_DECLARED) {
      if (format !== 'parquet') return textColumns(facts.flatMap(({ text }) => text ?? []), settings.types) // prettier-ignore
      // One of each shape tells what all do; DuckDB holds 32 MB or more for each text file that it looks at.
      const firsts = new Map(facts.map(({ shape }, index) => [shape, index] as const).toReversed())
      const described = files.filter((_, index) => firsts.get(facts[index]!.shape) === index)
      const key = described.map(keyOf).join('\n')
      let columns = columnsByFiles.get(key)
      if (!columns) {
        columns = describe(described).then((found) => readable(found, facts))
        columnsByFiles.set(key, columns)
        columns.catch(() => columnsByFiles.delete(key))
      }
      return columns
    },
  }

  async function parquetFacts(files: readonly LakeFile[]): Promise<FileFacts[]> {
    const paths = files.map(({ file }) => join(location, file))
    const [rows, footers] = await Promise.all([
      inspect({ kind: 'rowGroups', paths }),
      Promise.all(files.map(({ size }, index) => hashFooter(paths[index]!, size))),
    ])
    const groups = new Map<
      string,
      Pick<FileFacts, 'shape' | 'unread'> & { names: readonly string[]; rowGroups: RowGroup[] }
    >()
    for (const row of rows) {
      const { file_name, elements, rows: count, columns } = rowGroupSchema.parse(row)
      const facts = groups.get(file_name) ?? {
        shape: JSON.stringify(elements),
        names: columnsOfLeaves(elements).map((name) => name.toLowerCase()),
        unread: columnsTooPrecise(elements),
        rowGroups: [],
      }
      if (count !== null) facts.rowGroups.push({ rows: count, columnBytes: bytesByColumn(facts.names, columns) })
      groups.set(file_name, facts)
    }
    return paths.map((path, index) => ({
      footer: footers[index]!,
      rowGroups: groups.get(path)?.rowGroups ?? [],
      shape: groups.get(path)?.shape ?? '',
      names: new Set(groups.get(path)?.names),
      unread: groups.get(path)?.unread ?? [],
    }))
  }

  async function factsOfTexts(
    format: 'csv' | 'json',
    files: readonly LakeFile[],
    settings: TableSettings,
  ): Promise<FileFacts[]> {
    const facts: FileFacts[] = []
    for (let from = 0; from < files.length; from += TEXTS_AT_ONCE) {
      const some = files.slice(from, from + TEXTS_AT_ONCE)
      facts.push(...(await Promise.all(some.map((file) => factsOfText(format, file, settings)))))
    }
    return facts
  }

  async function factsOfText(format: 'csv' | 'json', file: LakeFile, { text }: TableSettings): Promise<FileFacts> {
    const path = join(location, file.file)
    const [facts, footer] = await Promise.all([textFacts(inspect, format, path, text), hashFooter(path, file.size)])
    const names = namesOf(facts).map((name) => name.toLowerCase())
    return { footer, rowGroups: [], names: new Set(names), unread: [], shape: JSON.stringify(names), text: facts }
  }

  async function describe(files: readonly LakeFile[]): Promise<readonly FoundFileColumn[]> {
    const paths = files.map(({ file }) => join(location, file))
    const rows = await inspect({ kind: 'columns', paths, unionByName: files.length > 1 })
    const columns: FoundFileColumn[] = []
    for (const row of rows) {
      const { column_name: source, column_type: duckdbType } = describeSchema.parse(row)
      // No statement of DuckDB can name it.
      if (source.includes('\0') || duckdbType.includes('\0')) continue
      const name = source.toLowerCase()
      if (columns.some((column) => column.name === name)) {
        const message = `Column '${name}' is ambiguous: names in the files differ only in case`
        throw new EngineError('AMBIGUOUS_NAME', message, { retry: 'later' })
      }
      const type = columnType(parseDuckDbType(duckdbType))
      if (type) columns.push({ ...type, source, name, duckdbType })
    }
    return columns
  }
}

/** @throws EngineError AMBIGUOUS_NAME for a column that no file has by itself: DuckDB gave it a name beside another one's */
function readable(columns: readonly FoundFileColumn[], facts: readonly FileFacts[]): readonly FoundFileColumn[] {
  const unread = new Set(facts.flatMap((fact) => fact.unread))
  const unknown = columns.find(({ name }) => !facts.some(({ names }) => names.has(name)))
  if (unknown && facts.some(({ shape }) => shape !== facts[0]!.shape)) {
    const message = `Column '${unknown.name}' is ambiguous: names in the files differ only in case, or are empty`
    throw new EngineError('AMBIGUOUS_NAME', message, { retry: 'later' })
  }
  return columns.filter(({ name }) => !unread.has(name))
}

/** A file that is half written is whole later, and one that cannot be read may be mended. */
function askedAgain(ask: ConnectorContext['inspect']): ConnectorContext['inspect'] {
  return (question) =>
    ask(question).catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error
      throw new EngineError(error.errorName, error.message, { cause: error, retry: 'later' })
    })
}

/** @param leaves the column that each leaf of the schema is part of */
function bytesByColumn(
  leaves: readonly string[],
  columns: readonly { readonly leaf: number; readonly bytes: number }[],
): Record<string, number> {
  const sums = new Map<string, number>()
  for (const { leaf, bytes } of columns) {
    const name = leaves[leaf]
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + bytes)
  }
  return Object.fromEntries(sums)
}

function keyOf({ file, size, mtime }: LakeFile): string {
  return `${size} ${mtime} ${file}`
}

/** Keeps the newest entries: files that are gone or changed fall out by themselves. */
function createBoundedMap<V>(limit: number): Pick<Map<string, V>, 'get' | 'set' | 'delete'> {
  const map = new Map<string, V>()
  return {
    get: (key) => map.get(key),
    set(key, value) {
      map.delete(key)
      map.set(key, value)
      if (map.size > limit) map.delete(map.keys().next().value!)
      return map
    },
    delete: (key) => map.delete(key),
  }
}
