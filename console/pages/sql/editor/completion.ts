import type { Completion, CompletionContext, CompletionResult, CompletionSource } from '@codemirror/autocomplete'
import type { StatementSession } from '../../../api/statement/session.ts'
import type { Metadata } from '../../../api/statement/metadata.ts'
import { KEYWORDS } from './trino-dialect.ts'

/** The names before the cursor, `catalog.schema.ta`, each plain or in quotes. */
const NAMES = /(?:(?:"(?:[^"]|"")*"|[\w$]+)\s*\.\s*)*(?:"(?:[^"]|"")*|[\w$]*)$/
const NAME = /"((?:[^"]|"")*)"?|([\w$]+)/g
/** A table of the statement with its alias: `FROM a.b.c AS d`. */
const TABLE =
  /\b(?:from|join|into|update)\s+((?:"(?:[^"]|"")*"|[\w$]+)(?:\s*\.\s*(?:"(?:[^"]|"")*"|[\w$]+)){0,2})(?:\s+(?:as\s+)?([\w$]+))?/gi

const keywords: readonly Completion[] = KEYWORDS.split(' ').map((word) => ({
  label: word.toUpperCase(),
  type: 'keyword',
  boost: -1,
}))

/**
 * Completes names from the server's metadata: catalogs, schemas, tables, columns of the statement's tables, functions
 * and keywords.
 */
export function completeNames(metadata: Metadata, session: () => StatementSession): CompletionSource {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const before = context.matchBefore(NAMES)
    if (!before || (before.text === '' && !context.explicit)) return null
    const names = namesIn(before.text)
    const isStarted = /[\w$"]$/.test(before.text)
    const path = isStarted ? names.slice(0, -1) : names
    const last = /(?:"(?:[^"]|"")*|[\w$]*)$/.exec(before.text)?.[0] ?? ''
    const options = await candidates(path, context.state.doc.toString(), session(), metadata)
    return { from: context.pos - last.length, options: [...options], validFor: /^"?[\w$]*$/ }
  }
}

/** The completions after a path of names. */
export async function candidates(
  path: readonly string[],
  sql: string,
  { catalog, schema }: StatementSession,
  metadata: Metadata,
): Promise<readonly Completion[]> {
  const tables = tablesIn(sql, catalog, schema)
  const [first = '', second = '', third = ''] = path
  const ofTable = tables.find(({ alias, names }) => alias === first || names.at(-1) === first)
  switch (path.length) {
    case 0: {
      const columns = await Promise.all(tables.map(({ names }) => columnsOf(metadata, names)))
      return [
        ...columns.flat(),
        ...named(await metadata.catalogs(), 'namespace'),
        ...(catalog === undefined ? [] : named(await metadata.schemas(catalog), 'namespace')),
        ...(catalog === undefined || schema === undefined
          ? []
          : named(await metadata.tables(catalog, schema), 'class')),
        ...(await metadata.functions()).map((name) => ({ label: name, type: 'function' })),
        ...keywords,
      ]
    }
    case 1:
      if (ofTable) return columnsOf(metadata, ofTable.names)
      return [
        ...named(await metadata.schemas(first), 'namespace'),
        ...(catalog === undefined ? [] : named(await metadata.tables(catalog, first), 'class')),
      ]
    case 2:
      return [
        ...named(await metadata.tables(first, second), 'class'),
        ...(catalog === undefined ? [] : await columnsOf(metadata, [catalog, first, second])),
      ]
    default:
      return columnsOf(metadata, [first, second, third])
  }
}

interface UsedTable {
  readonly names: readonly string[]
  readonly alias: string | undefined
}

/** The tables of a statement whose whole name is known. */
function tablesIn(sql: string, catalog: string | undefined, schema: string | undefined): readonly UsedTable[] {
  return [...sql.matchAll(TABLE)].flatMap(([, text = '', alias]) => {
    const names = namesIn(text)
    const before = [catalog, schema].slice(0, 3 - names.length)
    const whole = [...before, ...names].filter((name) => name !== undefined)
    return whole.length === 3 ? [{ names: whole, alias: alias?.toLowerCase() }] : []
  })
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(NAME)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.toLowerCase())
}

async function columnsOf(metadata: Metadata, names: readonly string[]): Promise<readonly Completion[]> {
  const [catalog = '', schema = '', table = ''] = names
  const columns = await metadata.columns(catalog, schema, table)
  return columns.map(({ name, type }) => ({ ...completion(name, 'property'), detail: type, boost: 1 }))
}

function named(names: readonly string[], type: string): readonly Completion[] {
  return names.map((name) => completion(name, type))
}

/** A name is written in quotes where it is not a plain lower-case word. */
function completion(name: string, type: string): Completion {
  const isPlain = /^[a-z_][a-z0-9_$]*$/.test(name)
  return { label: name, type, ...(isPlain ? {} : { apply: `"${name.replaceAll('"', '""')}"` }) }
}
