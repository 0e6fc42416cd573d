import { ClusterLost, type RemoteAnswer, type RemoteTail } from './relay-port.ts'

/**
 * Reads an answer to its end.
 * @param cluster the name of the cluster that gave the answer
 * @param mostBytes the most bytes of rows that may be held in memory
 * @param tooLarge makes the error for more bytes
 * @returns the JSON array of the rows, undefined where there are none; and the members behind the rows
 * @throws ClusterLost when the answer breaks off or is too large
 */
export async function readWhole(
  cluster: string,
  { data, tail }: RemoteAnswer,
  mostBytes: number,
  tooLarge: () => Error = () =>
    new ClusterLost(cluster, 'nonsense', `one answer has more than ${mostBytes} bytes of rows`),
): Promise<{ readonly rows: Buffer | undefined; readonly tail: RemoteTail }> {
  // If the answer breaks off, the loop below throws first: the rejection of the tail must not stay unhandled.
  tail.catch(() => {})
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of data ?? []) {
    bytes += part.length
    if (bytes > mostBytes) throw tooLarge()
    parts.push(part)
  }
  return { tail: await tail, rows: data && Buffer.concat(parts) }
}
