import type { ConnectorColumn, ConnectorTable } from '../../../connectors/spi/connector.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { shownName } from '../../../sql/access-control.ts'
import type { SqlType } from '../../../sql/types/sql-type.ts'
import { parseTypeText } from '../../../sql/types/type-names.ts'
import { typeName, typeText } from '../../../sql/types/type-text.ts'

/** The full name of a table, in lower case. */
export interface MirroredTable {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

export interface MirrorDeps {
  /** A table of this server; undefined if there is none. */
  readonly tableHere: (table: MirroredTable) => Promise<Pick<ConnectorTable, 'columns' | 'view' | 'about'> | undefined>
  /**
   * The columns of a table at the target; undefined if there is none.
   * @throws EngineError if they are not known
   */
  readonly columnsThere: (table: MirroredTable) => Promise<readonly ConnectorColumn[] | undefined>
}

/**
 * Compares tables of mirrored catalogs with the tables of the same names at a target. A statement gives the same result
 * there only if each table has the same columns in the same order.
 * @param target its name in the text: `group big`
 * @returns why a table cannot be read at the target; undefined if all can
 */
export async function mirrorFault(
  tables: readonly MirroredTable[],
  target: string,
  deps: MirrorDeps,
): Promise<string | undefined> {
  for (const table of tables) {
    const fault = await faultOf(table, target, deps)
    if (fault !== undefined) return fault
  }
  return undefined
}

async function faultOf(table: MirroredTable, target: string, deps: MirrorDeps): Promise<string | undefined> {
  const name = `table ${shownName(table)}`
  if (table.schema === 'information_schema') return `${name} is about this server`
  try {
    const here = await deps.tableHere(table)
    if (!here) return `this server has no ${name}`
    if (here.view) return `${name} is a view of this server`
    if (here.about !== undefined) return `${name} is about this server`
    const there = await deps.columnsThere(table)
    if (!there) return `${target} has no ${name}`
    const difference = differenceOf(shown(here.columns), shown(there), target)
    return difference && `${name} differs: ${difference}`
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    return `the columns of ${name} are not known: ${error.message}`
  }
}

interface NamedType {
  readonly name: string
  readonly type: string
}

function shown(columns: readonly ConnectorColumn[]): readonly NamedType[] {
  return columns.filter(({ hidden }) => !hidden).map(({ name, type }) => ({ name: name.toLowerCase(), type }))
}

/** The first difference, as a text for users. */
function differenceOf(here: readonly NamedType[], there: readonly NamedType[], target: string): string | undefined {
  for (const [index, column] of here.entries()) {
    const other = there[index]
    if (other?.name === column.name && isSameType(column.type, other.type)) continue
    const same = there.find(({ name }) => name === column.name)
    if (!same) return `${target} has no column '${column.name}'`
    if (!isSameType(column.type, same.type))
      return `column '${column.name}' is ${column.type} here and ${same.type} at ${target}`
    return `the order of the columns is another one at ${target}`
  }
  const more = there[here.length]
  return more && `only ${target} has a column '${more.name}'`
}

/**
 * Whether two texts stand for the same type. Lists of columns write a type in another notation than connectors:
 * `decimal(10,2)` for `decimal(10, 2)`, and the names of fields without quotes.
 */
function isSameType(here: string, there: string): boolean {
  const [one, other] = [parsedType(here), parsedType(there)]
  if (one && other) return typeText(one).toLowerCase() === typeText(other).toLowerCase()
  // This server does not know a type that a cluster alone has, and cannot parse the name of a field such as `a b`
  // without quotes.
  return shownType(one, here) === shownType(other, there)
}

/** The type of a text; undefined if this server cannot parse the whole text. */
function parsedType(text: string): SqlType | undefined {
  // `parseTypeText` passes over other characters.
  if (!/^(?:"(?:[^"]|"")*"|[\w\s(),<>])*$/.test(text)) return undefined
  try {
    return parseTypeText(text)
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  }
}

function shownType(type: SqlType | undefined, text: string): string {
  return (type ? typeName(type) : text).toLowerCase().replaceAll(', ', ',')
}
