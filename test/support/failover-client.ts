import { setTimeout as sleep } from 'node:timers/promises'
import { post, raw, trinoHeaders, type RawAnswer, type StatementJson } from './statement-client.ts'

export interface FailoverRun {
  readonly id: string
  readonly rows: readonly (readonly unknown[])[]
  readonly error: StatementJson['error']
  /** The number of requests that were sent again, to the other address. */
  readonly retries: number
}

/**
 * A client with one name for two coordinators. After a refused or broken connection it tries the other address, as a
 * virtual address or a proxy does. It retries no answered request, and every answer must be 200.
 */
export async function runOnEither(
  bases: readonly string[],
  sql: string,
  onAnswer: (answer: StatementJson) => void = () => {},
): Promise<FailoverRun> {
  let at = 0
  let retries = 0
  async function patiently(ask: (base: string) => Promise<RawAnswer>): Promise<StatementJson> {
    const until = performance.now() + 90_000
    for (;;) {
      const base = bases[at % bases.length]!
      const answer = await ask(base).catch((error: NodeJS.ErrnoException) => error)
      if ('status' in answer) {
        if (answer.status !== 200) throw new Error(`${base}: ${answer.status} ${answer.text}`)
        onAnswer(answer.json)
        return answer.json
      }
      if (performance.now() > until) throw answer
      at++
      retries++
      await sleep(50)
    }
  }
  let answer = await patiently((base) => post(base, sql, trinoHeaders))
  const { id } = answer
  const rows: (readonly unknown[])[] = []
  while (answer.nextUri !== undefined) {
    const { pathname } = new URL(answer.nextUri)
    answer = await patiently((base) => raw(base + pathname, { timeoutMs: 5_000 }))
    rows.push(...(answer.data ?? []))
  }
  return { id, rows, error: answer.error, retries }
}
