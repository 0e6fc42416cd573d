import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type { ConnectorContext } from '../spi/connector.ts'
import { parquetFooterSchema, type ParquetFooter } from '../spi/parquet-footer.ts'
import type { RowGroup } from '../spi/parquet-scan.ts'
import { columnType, type ColumnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import { checkedByRow, finerColumns, leavesOf, misreadColumns } from './parquet-schema.ts'
import { hashFooter, type LakeFile } from './lake-files.ts'
import type { FileFormat } from './file-format.ts'
import { NOTHING_DECLARED, type TableSettings } from './table-settings.ts'
import { namesOf, textColumns, textFacts, type TextFacts } from './text-facts.ts'

export interface FileFacts {
  readonly footer: string
  /** Parquet only. */
  readonly rowGroups: readonly RowGroup[]
  /** The file's own columns, lower case. */
  readonly names: ReadonlySet<string>
  /**
   * Columns of `names` that would be read as other values, with the reason: a statement that reads such a column fails.
   */
  readonly misread: ReadonlyMap<string, string>
  /** Columns of `names` whose values may be finer than the type they are read as (`finerColumns`). */
  readonly finer: ReadonlySet<string>
  /**
   * Columns of `names` for which bounds or bloom filters of the file give wrong answers (`FileColumn.checkedByRow`).
   */
  readonly checkedByRow: ReadonlySet<string>
  /** The same text for the same column names and types; tables whose files differ are read by name. */
  readonly shape: string
  /** CSV and JSON only. */
  readonly text?: TextFacts
}

export interface FoundFileColumn extends ColumnType {
  /** The name in the files. */
  readonly source: string
  /** Lower case. */
  readonly name: string
  /** DuckDB's type text. */
  readonly duckdbType: string
}

/** Facts and columns of files; DuckDB is asked once for each (path, size, mtime). */
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
/** The number of text files that are examined at a time: the engine holds a window of each. */
const TEXTS_AT_ONCE = 4

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
          // A failure (file half written, engine lost) is not cached: the next query asks again.
          fact.catch(() => factsByFile.delete(key(file)))
        }
      }
      return Promise.all(files.map((file) => factsByFile.get(key(file))!))
    },

    async columns(format, files, facts, settings = NOTHING_DECLARED) {
      if (format !== 'parquet') return textColumns(facts.flatMap(({ text }) => text ?? []), settings.types) // prettier-ignore
      // One file of each shape is enough: files of one shape have the same columns.
      const firsts = new Map(facts.map(({ shape }, index) => [shape, index] as const).toReversed())
      const described = files.filter((_, index) => firsts.get(facts[index]!.shape) === index)
      const key = described.map(keyOf).join('\n')
      let columns = columnsByFiles.get(key)
      if (!columns) {
        columns = describe(described).then((found) => {
          checkNames(found, facts)
          return found
        })
        columnsByFiles.set(key, columns)
        columns.catch(() => columnsByFiles.delete(key))
      }
      return columns
    },
  }

  async function parquetFacts(files: readonly LakeFile[]): Promise<FileFacts[]> {
    const paths = files.map(({ file }) => join(location, file))
    const [answers, hashes] = await Promise.all([
      inspect({ kind: 'footers', paths }),
      Promise.all(files.map(({ size }, index) => hashFooter(paths[index]!, size))),
    ])
    return z
      .array(parquetFooterSchema)
      .length(files.length)
      .parse(answers)
      .map((footer, index) => parquetFact(footer, hashes[index]!))
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
    return {
      footer,
      rowGroups: [],
      names: new Set(names),
      misread: new Map(),
      finer: new Set(),
      checkedByRow: new Set(),
      shape: JSON.stringify(names),
      text: facts,
    }
  }

  async function describe(files: readonly LakeFile[]): Promise<readonly FoundFileColumn[]> {
    const paths = files.map(({ file }) => join(location, file))
    const rows = await inspect({ kind: 'columns', paths, unionByName: files.length > 1 })
    const columns: FoundFileColumn[] = []
    for (const row of rows) {
      const { column_name: source, column_type: duckdbType } = describeSchema.parse(row)
      // No statement of DuckDB can name the column.
      if (source.includes('\0') || duckdbType.includes('\0')) continue
      const name = source.toLowerCase()
      if (columns.some((column) => column.name === name)) {
        const message = `Column '${name}' is ambiguous: names in the files differ only in case`
        throw new EngineError('AMBIGUOUS_NAME', message, { retry: 'later' })
      }
      columns.push({ ...columnType(parseDuckDbType(duckdbType)), source, name, duckdbType })
    }
    return columns
  }
}

/**
 * @throws EngineError AMBIGUOUS_NAME for a column that no file has: DuckDB made its name up because two names conflict
 */
function checkNames(columns: readonly FoundFileColumn[], facts: readonly FileFacts[]): void {
  const unknown = columns.find(({ name }) => !facts.some(({ names }) => names.has(name)))
  if (unknown && facts.some(({ shape }) => shape !== facts[0]!.shape)) {
    const message = `Column '${unknown.name}' is ambiguous: names in the files differ only in case, or are empty`
    throw new EngineError('AMBIGUOUS_NAME', message, { retry: 'later' })
  }
}

/**
 * Makes errors of questions retriable: a file that is half written is complete later, and an unreadable file may be
 * repaired.
 */
function askedAgain(ask: ConnectorContext['inspect']): ConnectorContext['inspect'] {
  return (question) =>
    ask(question).catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error
      throw new EngineError(error.errorName, error.message, { cause: error, retry: 'later' })
    })
}

function parquetFact(parsed: ParquetFooter, footer: string): FileFacts {
  const leaves = leavesOf(parsed.elements)
  const names = leaves.map(({ column }) => column.toLowerCase())
  return {
    footer,
    rowGroups: parsed.rowGroups.map(({ rows, bytes }) => ({ rows, columnBytes: bytesByColumn(names, bytes) })),
    names: new Set(names),
    misread: misreadColumns(leaves),
    finer: finerColumns(leaves, parsed),
    checkedByRow: checkedByRow(leaves, parsed),
    shape: createHash('sha256').update(JSON.stringify(parsed.elements)).digest('base64'),
  }
}

/** @param names the top-level column of each leaf of the schema */
function bytesByColumn(names: readonly string[], bytes: readonly number[]): Record<string, number> {
  const sums: Record<string, number> = Object.create(null) as Record<string, number>
  for (const [leaf, size] of bytes.entries()) {
    const name = names[leaf]
    if (name !== undefined) sums[name] = (sums[name] ?? 0) + size
  }
  return sums
}

function keyOf({ file, size, mtime }: LakeFile): string {
  return `${size} ${mtime} ${file}`
}

/** A map that keeps the newest entries: entries of removed or changed files are dropped in time. */
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
