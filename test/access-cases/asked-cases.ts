import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '../support/quipu-process.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'
import { setup, type AccessCase } from './cases.ts'

/** A server that answers statements, with a rules file that the test changes. */
export interface AskedServer {
  readonly url: string
  writeRules(text: string): void
  credentialOf?(user: string): Readonly<Record<string, string>>
}

/** The answer to a case; lines and columns count from 1. */
export interface AccessAnswer {
  readonly rows?: readonly (readonly unknown[])[]
  readonly error?: {
    readonly name: string
    readonly code: number
    readonly type: string
    readonly message: string
    readonly at?: string
  }
}

const fixtures = new URL('../fixtures/access/', import.meta.url)

export function accessFixturePath(name: string): string {
  return fileURLToPath(new URL(name, fixtures))
}

export function accessFixture(name: string): string {
  return readFileSync(accessFixturePath(name), 'utf8')
}

/** A case and Trino's answer to it. */
export type RecordedCase = Pick<AccessCase, 'rules' | 'user' | 'sql' | 'prepared'> & AccessAnswer

export function recordedAnswers(): readonly RecordedCase[] {
  const lines = accessFixture('trino-476.jsonl').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as RecordedCase)
}

/** Prepares the tables and runs the cases one after the other. The rules of a case are in force before it runs. */
export async function* answersOf(
  server: AskedServer,
  cases: readonly AccessCase[],
): AsyncGenerator<readonly [AccessCase, AccessAnswer]> {
  let rules: AccessCase['rules'] = 'sparse'
  await useRules(server, rules)
  for (const { user, sql } of setup) {
    const { error } = await answerOf(server, { rules, user, sql })
    if (error) throw new Error(`${sql}: ${error.message}`)
  }
  for (const one of cases) {
    if (one.rules !== rules) await useRules(server, one.rules)
    rules = one.rules
    yield [one, await answerOf(server, one)]
  }
}

/** Each rules file allows `probe` to become the user that bears the name of the file. */
async function useRules(server: AskedServer, rules: AccessCase['rules']): Promise<void> {
  server.writeRules(accessFixture(`${rules}.json`))
  await waitUntil(`the rules ${rules} are in force`, async () => {
    const probe = await answerOf(server, { rules, user: 'probe', sql: `SET SESSION AUTHORIZATION ${rules}` })
    return probe.error === undefined
  })
}

async function answerOf(server: AskedServer, { user, sql, prepared, anyRows }: AccessCase): Promise<AccessAnswer> {
  const headers = {
    ...trinoHeaders,
    'x-trino-user': user,
    ...server.credentialOf?.(user),
    'x-trino-catalog': 'memory',
    'x-trino-schema': 'default',
    'x-trino-prepared-statement': Object.entries(prepared ?? {})
      .map(([name, text]) => `${name}=${encodeURIComponent(text)}`)
      .join(','),
  }
  const { rows, error } = await run(server.url, sql, headers)
  if (error === undefined) return anyRows ? {} : { rows }
  const { errorName: name, errorCode: code, errorType: type, message, errorLocation: at } = error
  return { error: { name, code, type, message, ...(at && { at: `${at.lineNumber}:${at.columnNumber}` }) } }
}
