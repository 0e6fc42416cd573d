import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { writePasswordFile } from '../support/password-file.ts'
import { temporaryFolder } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { accessFixture, accessFixturePath, answersOf, recordedAnswers, type RecordedCase } from './asked-cases.ts'
import { accessCases, setup } from './cases.ts'
import { startTrino } from './trino-server.ts'

/** The folder of an unpacked Trino server; if it is set, the test records Trino's answers again. */
const trinoHome = process.env['QUIPU_TRINO_HOME']

describe.runIf(trinoHome)("Trino's answers to the access cases", () => {
  it('writes the answers of a Trino server to the fixture', { timeout: 1_800_000 }, async () => {
    const folder = temporaryFolder()
    const trino = await startTrino(trinoHome!, folder.path)
    const recorded: RecordedCase[] = []
    try {
      for await (const [{ rules, user, sql, prepared }, answer] of answersOf(trino, accessCases))
        recorded.push({ rules, user, sql, ...(prepared && { prepared }), ...answer })
    } finally {
      await trino.stop()
      await folder.remove()
    }
    writeFileSync(accessFixturePath('trino-476.jsonl'), recorded.map((one) => `${JSON.stringify(one)}\n`).join(''))
  })
})

describe.skipIf(trinoHome)("Quipu's answers to the access cases", () => {
  let rulesFile: string
  const server = serverOfFile('error', ({ folder }) => {
    rulesFile = join(folder, 'rules.json')
    const groups = join(folder, 'groups')
    const passwords = join(folder, 'passwords')
    writeFileSync(rulesFile, '{}', { mode: 0o644 })
    writeFileSync(groups, accessFixture('groups'), { mode: 0o644 })
    const users = new Set(['probe', ...[...setup, ...accessCases].map(({ user }) => user)])
    writePasswordFile(passwords, [...users], 'pw')
    return {
      QUIPU_AUTHENTICATION: 'password',
      QUIPU_PASSWORD_FILE: passwords,
      QUIPU_ACCESS_RULES_FILE: rulesFile,
      QUIPU_GROUPS_FILE: groups,
    }
  })

  it(
    'equal the recorded answers of Trino 476, except where a case gives the reason of its difference',
    { timeout: 600_000 },
    async () => {
      const asked = {
        url: server.url,
        writeRules: (text: string) => writeFileSync(rulesFile, text),
        credentialOf: (user: string) => ({ authorization: `Basic ${Buffer.from(`${user}:pw`).toString('base64')}` }),
      }
      const recorded = recordedAnswers()
      const [different, expected]: [object[], object[]] = [[], []]
      let agreed = 0
      expect(recorded.map(({ rules, user, sql }) => [rules, user, sql])).toEqual(
        accessCases.map(({ rules, user, sql }) => [rules, user, sql]),
      )
      // Trino's connector cannot change rows, which it says once the rights suffice. Quipu can, and must not change the
      // rows that later cases read.
      const cases = accessCases.map((one, i) =>
        changesRows(recorded[i]!) ? { ...one, sql: `EXPLAIN (TYPE VALIDATE) ${one.sql}` } : one,
      )
      let at = 0
      for await (const [{ rules, user, sql, differs }, { rows, error }] of answersOf(asked, cases)) {
        const answer = recorded[at++]!
        const trino = changesRows(answer) ? { rows: [[true]], error: undefined } : answer
        const [ours, theirs] = [
          { rows, error },
          { rows: trino.rows, error: trino.error },
        ]
        if (JSON.stringify(ours) === JSON.stringify(theirs)) {
          agreed++
        } else if (differs === undefined) {
          different.push({ rules, user, sql, ...ours })
          expected.push({ rules, user, sql, ...theirs })
        }
      }
      expect(different).toEqual(expected)
      expect(recorded.length).toBe(accessCases.length)
      console.log(`${agreed} of ${recorded.length} as in Trino, the others differ for the reasons beside the cases`)
    },
  )
})

function changesRows({ error }: RecordedCase): boolean {
  return error?.message === 'This connector does not support modifying table rows'
}
