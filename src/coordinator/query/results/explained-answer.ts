import type { RemoteAnswer, RemoteColumn } from '../../clusters/relay/relay-port.ts'
import type { Routed } from '../stream/events.ts'
import { routeLine } from '../stream/route-text.ts'

/** The most bytes before the first text. */
const MOST_BEGINNING = 256

/**
 * Writes the route as the first line of a plan that a cluster explains. Every other answer stays as it is.
 * @param routed the recorded route of the statement
 */
export function explainedAnswer(answer: RemoteAnswer, routed: Routed | undefined): RemoteAnswer {
  if (!routed || !('explains' in routed) || !routed.explains) return answer
  const { head, data } = answer
  const line = `${routeLine(routed)}\n`
  const { columns } = head
  const longer = [...line].length
  return {
    ...answer,
    head: { ...head, ...(columns && { columns: columns.map((column) => longerColumn(column, longer)) }) },
    data: data && withLine(data, line),
  }
}

/** The type of EXPLAIN's column is a varchar of the length of its text. */
function longerColumn(column: RemoteColumn, by: number): RemoteColumn {
  const length = Number(/^varchar\((\d+)\)$/.exec(column.type)?.[1])
  if (!Number.isSafeInteger(length)) return column
  const type = `varchar(${length + by})`
  const typeSignature = { rawType: 'varchar', arguments: [{ kind: 'LONG', value: length + by }] }
  return { ...column, type, ...(column.typeSignature === undefined ? {} : { typeSignature }) }
}

/** The JSON of the rows up to the text in their first cell. */
const FIRST_TEXT = /^\s*\[\s*\[\s*"/
/** A beginning that `FIRST_TEXT` may still match. */
const BEGINNING = /^\s*(\[\s*(\[\s*)?)?$/

/**
 * Inserts the line into the first cell while the rows are passed on. Rows that do not begin with a text stay as they are.
 * @param data the JSON array of the rows
 */
async function* withLine(data: AsyncIterable<Buffer>, line: string): AsyncGenerator<Buffer> {
  let begun: Buffer | undefined = Buffer.alloc(0)
  for await (const part of data) {
    if (!begun) {
      yield part
      continue
    }
    begun = Buffer.concat([begun, part])
    const beginning = begun.toString('latin1', 0, MOST_BEGINNING)
    if (begun.length < MOST_BEGINNING && BEGINNING.test(beginning)) continue
    const before: number = FIRST_TEXT.exec(beginning)?.[0].length ?? 0
    if (before > 0) {
      yield begun.subarray(0, before)
      yield Buffer.from(JSON.stringify(line).slice(1, -1))
    }
    yield begun.subarray(before)
    begun = undefined
  }
  if (begun) yield begun
}
