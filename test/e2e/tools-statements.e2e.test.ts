import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withLake } from '../support/lake-catalog.ts'
import { repository } from '../support/repository.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { ToolSession } from '../support/tool-session.ts'

/** A statement as a published tool sends it. */
interface ToolStatement {
  readonly tool: string
  readonly sql: string
  /** Begins with the catalog and schema of the tool's session: `session memory.default; …`. */
  readonly note: string
  /** The error name that Trino gives. */
  readonly refused?: string
  /** Makes a table that the tool has made before. */
  readonly before?: string
}

const statements = readFileSync(join(repository, 'test', 'fixtures', 'tools-statements.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as ToolStatement)

const server = serverOfFile('error', withLake)

/** Sends the statements of all tools in their order. @returns the statements that had another end than in Trino */
async function differences(of: (statement: ToolStatement) => ToolStatement | undefined): Promise<string[]> {
  const found: string[] = []
  let session: ToolSession | undefined
  let tool = ''
  for (const [line, given] of statements.entries()) {
    const statement = of(given)
    if (!statement) continue
    if (statement.tool !== tool) session = new ToolSession(server.url)
    tool = statement.tool
    const expected = statement.refused ?? 'answered'
    const [, catalog, schema] = /^session (\w+)(?:\.(\w+))?/.exec(statement.note) ?? []
    if (statement.before !== undefined) await session!.end(statement.before)
    if (statement.sql.startsWith('START TRANSACTION')) session!.reconnect()
    const end = await session!.end(statement.sql, catalog, schema)
    if (end !== expected) found.push(`line ${line + 1} (${tool}): ${end}, not ${expected}: ${statement.sql}`)
  }
  return found
}

/** The same statement about the catalog `lake`; undefined for a statement that has nothing to do with `memory`. */
function overLake(statement: ToolStatement): ToolStatement | undefined {
  const { sql, note, before } = statement
  if (!/\bmemory\b/.test(sql + note)) return undefined
  const renamed = (text: string): string => text.replaceAll(/\bmemory\b/g, 'lake')
  return {
    ...statement,
    sql: renamed(sql),
    note: renamed(note),
    ...(before !== undefined && { before: renamed(before) }),
  }
}

describe('The statements of 22 published tools', () => {
  it("get Trino's answers over the catalog memory", { timeout: 600_000 }, async () => {
    expect(statements).toHaveLength(238)
    expect(await differences((statement) => statement)).toEqual([])
  })

  it("get Trino's answers over a lake", { timeout: 600_000 }, async () => {
    expect(await differences(overLake)).toEqual([])
  })
})
