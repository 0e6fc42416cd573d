import type { ColumnId } from '../analyzer/tree.ts'
import { columnName, type Output, type RenderState } from './render-state.ts'

/** A column in ORDER BY: by its name in the select list where it stands `alone`; in an expression such names are none. */
export type SortText = (column: ColumnId, alone: boolean) => string

/** A SELECT being put together. Clauses are added in their order; what comes too late goes around it. */
export interface Block {
  /** Common tables in front of it, `name AS (…)`. */
  readonly with: readonly string[]
  /** Empty: one row without columns. */
  readonly from: string
  readonly where: readonly string[]
  /** GROUP BY … */
  readonly tail: string
  /** What can be read: each column as an expression over FROM. */
  readonly columns: ReadonlyMap<ColumnId, string>
  /** Some of `columns` are calculated: only the next SELECT may use them. */
  readonly computed: boolean
  readonly distinct: boolean
  /** Sort items over names or expressions, made when the SELECT is written. */
  readonly orderBy: ((text: SortText) => readonly string[]) | undefined
  readonly limit: string
}

export function fromBlock(from: string, columns: Iterable<ColumnId>): Block {
  return {
    with: [],
    from,
    where: [],
    tail: '',
    columns: new Map([...columns].map((id) => [id, columnName(id)])),
    computed: false,
    distinct: false,
    orderBy: undefined,
    limit: '',
  }
}

/** Only FROM so far: it may stand in another FROM as it is. */
export function isBare(block: Block): boolean {
  return block.with.length === 0 && block.where.length === 0 && isOpen(block)
}

/** FROM and WHERE alone: conditions, and calculations over its columns, may be added. */
export function isOpen(block: Block): boolean {
  return block.tail === '' && !block.computed && !block.distinct && block.orderBy === undefined && block.limit === ''
}

/** The block as an item of FROM. */
export function asFromItem(state: RenderState, block: Block): string {
  if (isBare(block) && block.from !== '') return block.from
  return `(${selectText(block, neededOutputs(state, block))})`
}

/** A new block that reads this one. */
export function wrapped(state: RenderState, block: Block): Block {
  const outputs = neededOutputs(state, block)
  return fromBlock(
    `(${selectText(block, outputs)})`,
    outputs.map((output) => output.column),
  )
}

export function opened(state: RenderState, block: Block): Block {
  return isOpen(block) ? block : wrapped(state, block)
}

export function neededOutputs(state: RenderState, block: Block): readonly Output[] {
  return [...block.columns.keys()]
    .filter((column) => state.needed.has(column))
    .map((column) => ({ column, name: columnName(column) }))
}

/** The whole SELECT with these outputs; without any, rows of one constant. */
export function selectText(block: Block, outputs: readonly Output[]): string {
  const names = new Map<ColumnId, string>()
  const items = outputs.map(({ column, name, wrap }) => {
    const text = block.columns.get(column) ?? columnName(column)
    const value = wrap === undefined ? text : wrap(text)
    if (wrap === undefined && !names.has(column)) names.set(column, name)
    return value === name ? name : `${value} AS ${name}`
  })
  const parts = [
    block.with.length === 0 ? '' : `WITH ${block.with.join(', ')}`,
    `SELECT ${block.distinct ? 'DISTINCT ' : ''}${items.length === 0 ? '1 AS one' : items.join(', ')}`,
    block.from === '' ? '' : `FROM ${block.from}`,
    block.where.length === 0 ? '' : `WHERE ${block.where.join(' AND ')}`,
    block.tail,
    block.orderBy === undefined
      ? ''
      : `ORDER BY ${block.orderBy((column, alone) => (alone ? names.get(column) : undefined) ?? block.columns.get(column) ?? columnName(column)).join(', ')}`,
    block.limit,
  ]
  return parts.filter((part) => part !== '').join(' ')
}
