/** The part of the npm package `presto-client` that tests use. The package has no types. */
declare module 'presto-client' {
  export class Client {
    constructor(options: {
      host: string
      port: number
      user: string
      catalog: string
      schema: string
      engine: 'presto' | 'trino'
      checkInterval?: number
    })
    execute(statement: {
      query: string
      data: (error: unknown, rows: unknown[][]) => void
      success: () => void
      error: (error: { message: string; errorName?: string }) => void
    }): void
  }
}
