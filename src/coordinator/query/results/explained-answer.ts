import { parseJson } from '../../../shared/parse-json.ts'
import type { RemoteAnswer, RemoteColumn } from '../../clusters/relay/relay-port.ts'
import type { Routed } from '../stream/events.ts'
import { routeLine } from '../stream/route-text.ts'

/** A longer plan is passed on without the line. */
const MOST_BYTES = 16 * 1024 * 1024

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

/** @param data the JSON array of the rows */
async function* withLine(data: AsyncIterable<Buffer>, line: string): AsyncGenerator<Buffer> {
  let parts: Buffer[] | undefined = []
  let bytes = 0
  for await (const part of data) {
    bytes += part.length
    if (parts) parts.push(part)
    else yield part
    if (!parts || bytes <= MOST_BYTES) continue
    yield Buffer.concat(parts)
    parts = undefined
  }
  if (parts) yield rowsWithLine(Buffer.concat(parts), line)
}

function rowsWithLine(text: Buffer, line: string): Buffer {
  const rows = parseJson(text.toString('utf8'))
  if (!Array.isArray(rows) || !Array.isArray(rows[0])) return text
  const [[plan, ...cells], ...others] = rows as [unknown[], ...unknown[]]
  return typeof plan === 'string' ? Buffer.from(JSON.stringify([[line + plan, ...cells], ...others])) : text
}
