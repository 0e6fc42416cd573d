import { createHash } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { eventsOf } from '../support/leaks.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { raw, run } from '../support/statement-client.ts'

const folder = temporaryFolder()
const file = join(folder.path, 'routing-rules.json')
let server: KillableServer

function writeRules(text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o644 })
  renameSync(`${file}.new`, file)
}

const rulesFor = (user: string) =>
  JSON.stringify({ rules: [{ name: 'etl to big', match: { user }, route: { group: 'big' }, fallback: 'local' }] })
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

beforeAll(async () => {
  writeRules(rulesFor('etl-.*'))
  server = await startKillableServer({ QUIPU_ROUTING_RULES_FILE: file })
})
afterAll(async () => {
  await server?.close()
  await folder.remove()
})

/** Runs a statement. @returns the digest of the routing rules that its plan names */
async function digestOfPlan(): Promise<string | undefined> {
  const { id } = await run(server.url, 'SELECT 1')
  const events = JSON.parse((await raw(`${server.url}/v1/query/${id}/events`)).text) as {
    type: string
    data: { files?: Record<string, string> }
  }[]
  return events.find(({ type }) => type.startsWith('quipu.query.planned'))?.data.files?.['routing-rules']
}

/** The data of the events of a type that are about files. */
async function dataOf(type: string): Promise<readonly Record<string, unknown>[]> {
  const events = await eventsOf(server.database)
  return events.filter((event) => event.type === type).map(({ data }) => data as Record<string, unknown>)
}

it('a file of routing rules is recorded, and each plan names the digest of its version', async () => {
  expect(await digestOfPlan()).toBe(digestOf(rulesFor('etl-.*')))
  await waitUntil('the text is recorded', async () => (await dataOf('FileKept')).length > 0)
  expect(await dataOf('FileKept')).toEqual([
    { digest: digestOf(rulesFor('etl-.*')), part: 1, parts: 1, text: rulesFor('etl-.*') },
  ])
})

it('a changed file of routing rules comes into force; a broken one leaves the old rules in force', async () => {
  const isBroken = async () =>
    /quipu_files_broken\{file="routing-rules"\} (\d)/.exec((await raw(`${server.url}/metrics`)).text)?.[1]

  writeRules('{ "rules": [\n{ "name": "etl to big", "route": "elsewhere" }] }')
  await waitUntil('the file is known to be broken', async () => (await isBroken()) === '1')
  expect(await digestOfPlan()).toBe(digestOf(rulesFor('etl-.*')))
  await waitUntil('the refusal is recorded', async () => (await dataOf('FileRefused')).length > 0)
  expect(await dataOf('FileRefused')).toMatchObject([
    {
      file: 'routing-rules',
      reason: expect.stringMatching(/^line 2: rules, 1, route: /),
      inForce: digestOf(rulesFor('etl-.*')),
    },
  ])

  writeRules(rulesFor('airflow-.*'))
  await waitUntil('the file is in force', async () => (await isBroken()) === '0')
  expect(await digestOfPlan()).toBe(digestOf(rulesFor('airflow-.*')))
  expect(await dataOf('FileTaken')).toMatchObject([
    { file: 'routing-rules', occasion: 'reload', entries: 1, digest: digestOf(rulesFor('airflow-.*')) },
  ])
  expect((await dataOf('FileKept')).map(({ text }) => text)).toEqual([rulesFor('etl-.*'), rulesFor('airflow-.*')])
})
