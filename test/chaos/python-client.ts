import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { pythonClients } from '../support/real-clients.ts'
import { repository } from '../support/repository.ts'
import { cleanErrors, type Outcome } from './outcome.ts'
import type { RightAnswer } from './right-answers.ts'
import { statementOf, statements, type StatementName } from './statements.ts'

const lineSchema = z.object({
  name: z.string(),
  from: z.number(),
  to: z.number(),
  id: z.string().nullable().optional(),
  rows: z.string().optional(),
  error: z.string().optional(),
  connection: z.string().optional(),
  broken: z.string().optional(),
})

export interface PythonClientOptions {
  readonly python: NonNullable<Awaited<ReturnType<typeof pythonClients>>>
  readonly base: string
  readonly seed: number
  readonly forMs: number
  readonly right: ReadonlyMap<StatementName, RightAnswer>
  /** The time at which the clients began, in milliseconds since the Unix epoch. */
  readonly beganAt: number
  /** The credentials for a server with HTTPS and passwords; `ca` is the file with the certificate of the authority. */
  readonly logIn?: { readonly user: string; readonly password: string; readonly ca: string }
  /** The client waits this long after each statement. @default 0 */
  readonly pauseMs?: number
}

/** Runs statements one after the other with the published Python client of Trino. */
export async function runPythonClient(options: PythonClientOptions): Promise<Outcome[]> {
  const { python, base, seed, forMs, right, beganAt, logIn, pauseMs = 0 } = options
  const script = readFileSync(join(repository, 'test', 'chaos', 'client.py'), 'utf8')
  const names = (Object.keys(statements) as StatementName[]).filter((name) => statementOf(name).python)
  const mix = Object.fromEntries(names.map((name) => [name, statementOf(name).sql]))
  const { hostname, port } = new URL(base)
  const args = [
    hostname,
    port,
    String(seed),
    String(forMs / 1000),
    JSON.stringify(mix),
    JSON.stringify({ user: 'python', ...logIn, pauseMs }),
  ]
  // The Python client prefers this environment variable to its arguments.
  const trust: Readonly<Record<string, string>> = logIn ? { REQUESTS_CA_BUNDLE: logIn.ca } : {}
  const { code, stdout, stderr } = await python(script, args, trust)
  if (code !== 0) throw new Error(`The Python client ended with ${code}: ${stderr}`)
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line): Outcome => {
      const { name: text, from, to, id, rows, error, connection, broken } = lineSchema.parse(JSON.parse(line))
      const name = names.find((one) => one === text)!
      const common = {
        name,
        client: logIn?.user ?? 'python',
        behaviour: 'follow',
        ...(id ? { id } : {}),
        fromMs: Math.round(from * 1000 - beganAt),
        toMs: Math.round(to * 1000 - beganAt),
      } as const
      if (rows !== undefined) {
        const { digest } = right.get(name)!
        return rows === digest
          ? { ...common, result: 'right' }
          : { ...common, result: 'wrong', why: `${rows} in place of ${digest}` }
      }
      // The Python client gives up after three tries, and at once when a kill cuts an answer.
      if (connection !== undefined) return { ...common, result: 'left', why: connection }
      const clean = error !== undefined && cleanErrors.has(error)
      return { ...common, result: clean ? 'clean' : 'wrong', why: error ?? broken ?? line }
    })
}
