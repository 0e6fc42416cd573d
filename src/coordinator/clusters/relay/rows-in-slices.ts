import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { EngineError } from '../../../shared/engine-error.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import { JsonNesting } from './json-nesting.ts'
import { ClusterLost, type RemoteAnswer, type RemoteTail } from './relay-port.ts'

type Row = readonly unknown[]

/** The number of bytes that are parsed in one pass of the event loop. */
const SLICE_BYTES = 64 * 1024
/** The most bytes of a row. Rows of names are shorter; the parsing of a longer row would block the event loop. */
const MOST_ROW_BYTES = 1024 * 1024

/**
 * Reads an answer to its end, and parses its rows in slices, so that other work runs meanwhile.
 * @param cluster the name of the cluster that gave the answer
 * @param take gets the rows of a slice, in their order, and the bytes of the slice; it may throw to end the read
 * @returns the members behind the rows
 * @throws ClusterLost when the answer breaks off, or its rows are not lists of plain values; EngineError when one row is
 * too long
 */
export async function readRowsInSlices(
  cluster: string,
  { data, tail }: Pick<RemoteAnswer, 'data' | 'tail'>,
  take: (rows: readonly Row[], bytes: number) => void,
): Promise<RemoteTail> {
  // If the answer breaks off, the loop below throws first: the rejection of the tail must not stay unhandled.
  tail.catch(() => {})
  if (!data) return tail
  const slices = new RowSlices(cluster)
  for await (const chunk of data) {
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      const slice = chunk.subarray(at, at + SLICE_BYTES)
      take(slices.take(slice), slice.length)
      await nextLoopPass()
    }
  }
  slices.end()
  return tail
}

/** Cuts the JSON array of the rows after complete rows, so that each part can be parsed alone. */
class RowSlices {
  readonly #cluster: string
  readonly #nesting = new JsonNesting(0)
  /** The bytes behind the last complete row. */
  #rest: Buffer[] = []
  #restBytes = 0
  /** The character before the next row: the bracket of the array, or the comma behind a row. */
  #before = '['

  constructor(cluster: string) {
    this.#cluster = cluster
  }

  /** @returns the rows that are complete with these bytes */
  take(bytes: Buffer): readonly Row[] {
    const complete = this.#lastRowEnd(bytes)
    const rows = complete === 0 ? [] : this.#parsed(Buffer.concat([...this.#rest, bytes.subarray(0, complete)]))
    if (complete > 0) {
      this.#rest = []
      this.#restBytes = 0
    }
    this.#rest.push(bytes.subarray(complete))
    this.#restBytes += bytes.length - complete
    if (this.#restBytes > MOST_ROW_BYTES)
      throw new EngineError(
        'EXCEEDED_LOCAL_MEMORY_LIMIT',
        `Cluster ${this.#cluster} lists a name, a type or a comment with more than ${MOST_ROW_BYTES} bytes`,
      )
    return rows
  }

  /** Checks that the array has ended. */
  end(): void {
    const rest = Buffer.concat(this.#rest).toString('utf8').trim()
    if (this.#before === '[' ? !/^\[\s*\]$/.test(rest) : rest !== ']') throw this.#noRows()
  }

  /** The index behind the last row that ends in the bytes; 0 if none does. */
  #lastRowEnd(bytes: Buffer): number {
    const nesting = this.#nesting
    let end = 0
    for (let index = 0; index < bytes.length; index++) {
      const before = nesting.depth
      nesting.next(bytes[index]!)
      if (nesting.depth > 2) throw this.#noRows()
      if (before === 2 && nesting.depth === 1) end = index + 1
    }
    return end
  }

  #parsed(bytes: Buffer): readonly Row[] {
    const text = bytes.toString('utf8').trimStart()
    if (!text.startsWith(this.#before)) throw this.#noRows()
    this.#before = ','
    const rows = parseJson(`[${text.slice(1)}]`)
    if (!Array.isArray(rows) || !rows.every(isRow)) throw this.#noRows()
    return rows
  }

  #noRows(): ClusterLost {
    return new ClusterLost(this.#cluster, 'nonsense', 'its rows are not lists of values')
  }
}

function isRow(row: unknown): row is Row {
  return Array.isArray(row)
}
