import type { RemoteAnswer, RemoteTail } from './relay-port.ts'

/**
 * Reads the first rows of an answer.
 * @param mostBytes how many bytes of rows are held in memory
 * @returns the whole answer if its rows have at most `mostBytes`, else its rows as a stream, from the first on
 * @throws ClusterLost when the answer breaks off
 */
export async function readFirst(
  { data, tail }: Pick<RemoteAnswer, 'data' | 'tail'>,
  mostBytes: number,
): Promise<
  | { readonly kind: 'whole'; readonly rows: Buffer | undefined; readonly tail: RemoteTail }
  | { readonly kind: 'larger'; readonly data: AsyncIterable<Buffer> }
> {
  // If the answer breaks off, the loop below throws first: the rejection of the tail must not stay unhandled.
  tail.catch(() => {})
  if (!data) return { kind: 'whole', rows: undefined, tail: await tail }
  const source = data[Symbol.asyncIterator]()
  const first: Buffer[] = []
  for (let bytes = 0; bytes <= mostBytes; bytes += first.at(-1)!.length) {
    const part = await source.next()
    if (part.done) return { kind: 'whole', rows: Buffer.concat(first), tail: await tail }
    first.push(part.value)
  }
  return {
    kind: 'larger',
    data: {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          const value = first.shift()
          return value ? { done: false, value } : source.next()
        },
        return: async () => {
          await source.return?.()
          return { done: true, value: undefined }
        },
      }),
    },
  }
}
