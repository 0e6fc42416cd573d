/** A client on kept connections that reads answers whole. */
export interface BenchClient {
  /** Reads the bytes of a result. @throws Error when the statement fails */
  bytes(sql: string): Promise<{ readonly bytes: number; readonly requests: number }>
  close(): void
}

export function createClient(
  base: string,
  session?: { readonly catalog?: string; readonly schema?: string; readonly source?: string },
): BenchClient

export function quantile(sorted: readonly number[], q: number): number
