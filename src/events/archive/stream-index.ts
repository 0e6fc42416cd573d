import { open } from 'node:fs/promises'
import type { StoredEnvelope } from '../envelope.ts'
import type { LogPosition, StreamHead } from '../record-store.ts'
import type { PeriodManifest } from './manifest.ts'
import { packLines, unpackLines } from './segment.ts'

/** The offsets of a stream's valid events in a period. */
export interface StreamPositions {
  readonly partition: number
  readonly offsets: readonly bigint[]
}

/** A line of the index; offsets count from the beginning of the period. */
type IndexLine = readonly [stream: string, partition: number, offsets: readonly number[]]

const STREAMS_IN_BLOCK = 1000

/** Collects the offsets of each stream's events in a period, and the last events of streams that never end. */
export class StreamIndexBuilder {
  readonly #streams = new Map<string, { readonly partition: number; readonly offsets: number[] }>()
  readonly #heads: Map<string, StreamHead>
  readonly #from: readonly LogPosition[]
  readonly #canEnd: (stream: string) => boolean

  /** @param heads last events from the periods before */
  constructor(
    from: readonly LogPosition[],
    heads: ReadonlyMap<string, StreamHead>,
    /** Whether a stream can end. */
    canEnd: (stream: string) => boolean,
  ) {
    this.#from = from
    this.#heads = new Map(heads)
    this.#canEnd = canEnd
  }

  add(stream: string, partition: number, offset: bigint, { sequence, hash }: StoredEnvelope): void {
    const index = Number(offset - this.#from[partition]!.offset)
    const known = this.#streams.get(stream)
    if (known) known.offsets.push(index)
    else this.#streams.set(stream, { partition, offsets: [index] })
    if (!this.#canEnd(stream)) this.#heads.set(stream, { sequence, hash })
  }

  get heads(): ReadonlyMap<string, StreamHead> {
    return this.#heads
  }

  /** First and last name of the streams that can end; undefined without one. */
  get names(): PeriodManifest['names'] {
    const names = [...this.#streams.keys()].filter(this.#canEnd).sort()
    return names.length === 0 ? undefined : { first: names[0]!, last: names.at(-1)! }
  }

  /** The lines of the index, ordered by the code units of the stream names. */
  lines(): IndexLine[] {
    const names = [...this.#streams.keys()].sort()
    return names.map((name) => {
      const { partition, offsets } = this.#streams.get(name)!
      return [name, partition, offsets]
    })
  }

  async pack(): Promise<{ readonly bytes: Buffer; readonly blocks: PeriodManifest['streams']['blocks'] }> {
    const lines = this.lines()
    const parts: Buffer[] = []
    const blocks: PeriodManifest['streams']['blocks'] = []
    let at = 0
    for (let from = 0; from < lines.length; from += STREAMS_IN_BLOCK) {
      const block = lines.slice(from, from + STREAMS_IN_BLOCK)
      const bytes = await packLines(block)
      blocks.push({ first: block[0]![0], at, bytes: bytes.length })
      parts.push(bytes)
      at += bytes.length
    }
    return { bytes: Buffer.concat(parts), blocks }
  }
}

/** Whether a period can contain events of a stream, according to its manifest. */
export function mayHave({ names }: PeriodManifest, stream: string, canEnd: (stream: string) => boolean): boolean {
  return !canEnd(stream) || (names !== undefined && names.first <= stream && stream <= names.last)
}

/** Finds a stream in an index; reads one block of it. @param path of the index */
export async function positionsOf(
  path: string,
  manifest: PeriodManifest,
  stream: string,
): Promise<StreamPositions | undefined> {
  const block = manifest.streams.blocks.findLast(({ first }) => first <= stream)
  if (!block) return undefined
  const bytes = Buffer.alloc(block.bytes)
  const file = await open(path, 'r')
  try {
    await file.read(bytes, 0, block.bytes, block.at)
  } finally {
    await file.close()
  }
  const lines = (await unpackLines(bytes)) as IndexLine[]
  const line = lines.find(([name]) => name === stream)
  if (!line) return undefined
  const [, partition, offsets] = line
  const from = BigInt(manifest.from[partition]!.offset)
  return { partition, offsets: offsets.map((offset) => from + BigInt(offset)) }
}

/** The last events of streams, from the lines of their file. */
export function headsOf(lines: readonly unknown[]): ReadonlyMap<string, StreamHead> {
  return new Map(
    (lines as readonly (readonly [string, number, string])[]).map(([stream, sequence, hash]) => [
      stream,
      { sequence, hash },
    ]),
  )
}
