import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dialectBytes, dialectLiteral, hostileTexts } from '../support/hostile-texts.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run } from '../support/statement-client.ts'
import { textExpressions } from '../support/text-expressions.ts'
import { representatives } from '../support/full-tests.ts'

/* Text in literals stays data on its way through the server and the engine of the worker. */

const server = serverOfFile()

describe('A literal', () => {
  it('comes back unchanged if it contains template marks', async () => {
    expect((await run(server.url, `SELECT upper('cost $EUR'), lower('$E$F$1') FROM nation LIMIT 1`)).rows).toEqual([
      ['COST $EUR', '$e$f$1'],
    ])
  })

  it('cannot close the call around it to read a file or to call a function', async () => {
    await run(server.url, 'CREATE TABLE memory.default.secrets AS SELECT 42 AS answer')
    const written = readdirSync(server.folder, { recursive: true, encoding: 'utf8' })
    const manifest = written.find((path) => /secrets.*\.json$/.test(path))
    expect(manifest).toBeDefined()
    const inner = `' || (SELECT content FROM read_text($$$$${join(server.folder, manifest!)}$$$$)) || '`
    const statement = `SELECT max('$E') OVER (PARTITION BY ${dialectLiteral(inner)}), ${dialectLiteral(inner)} FROM region`
    expect((await run(server.url, statement)).rows).toEqual(Array.from({ length: 5 }, () => ['$E', inner]))
  })

  // The front end and the engine alone get all texts: test/sql/literals-as-columns.test.ts.
  it.each(representatives(hostileTexts, 4).map((text) => [JSON.stringify(text), text]))(
    '%s gives the same results as a column with the same text',
    async (_shown, text) => {
      // A statement that reads a table runs in the engine of the worker.
      const from = `(SELECT ${dialectBytes(text)} AS c, 1 AS n FROM region LIMIT 1)`
      for (const [kind, expressions] of textExpressions.entries()) {
        const whole = (e: string): string => (kind === 0 ? `try(${e})` : e)
        const items = expressions.flatMap((of) => [whole(of(dialectLiteral(text))), whole(of('c'))])
        const { rows, error } = await run(server.url, `SELECT ${items.join(', ')} FROM ${from}`)
        expect(error).toBeUndefined()
        const [values] = rows as [unknown[]]
        const wrong = expressions.flatMap((of, i) => {
          const [literal, column] = [values[2 * i], values[2 * i + 1]]
          return JSON.stringify(literal) === JSON.stringify(column) ? [] : [{ expression: of('e'), literal, column }]
        })
        expect(wrong).toEqual([])
      }
    },
  )
})
