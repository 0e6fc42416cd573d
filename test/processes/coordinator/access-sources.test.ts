import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { readGroupRules } from '../../../src/coordinator/dispatch/groups/group-rules.ts'
import { createAccessSources, type AccessSources } from '../../../src/processes/access/access-sources.ts'
import { temporaryFolder } from '../../support/quipu-process.ts'

const good = '{ "rootGroups": [{ "name": "all", "maxQueued": 1, "hardConcurrencyLimit": 7 }], "selectors": [] }'

let sources: AccessSources
const folder = temporaryFolder()
afterEach(async () => {
  sources.stop()
  await folder.remove()
})

it('access sources keep the last valid text of the previous process while a file is broken, and report it', async () => {
  const path = join(folder.path, 'groups.json')
  const texts: Record<string, string> = {}
  const reported: unknown[][] = []
  const refused: string[] = []
  const open = () => {
    const telemetry = {
      logger: { info() {}, warn() {}, error: (...line: unknown[]) => void reported.push(line) },
      meters: () => ({ set: (...figure: unknown[]) => void reported.push(figure) }),
    }
    let observed = false
    const kept = { last: { ...texts }, keep: (file: string, text: string) => void (texts[file] = text) }
    sources = createAccessSources(Buffer.from('key'), () => (observed ? (telemetry as never) : undefined), kept)
    const file = sources.follow('resource_groups', path, readGroupRules, { recorded: true })
    return { file, observe: () => void (observed = true) }
  }
  writeFileSync(path, '{ "rootGroups": [')
  expect(open).toThrow('groups.json: line 1')
  writeFileSync(path, good)
  open()
  sources.stop()
  writeFileSync(path, '{ "rootGroups": [')
  const { file, observe } = open()
  expect(file.value.rootGroups[0]?.hardConcurrencyLimit).toBe(7)
  await Promise.resolve()
  expect(reported).toEqual([])
  observe()
  sources.logBroken()
  expect(reported).toEqual([
    ['filesBroken', { file: 'resource_groups' }, 1],
    ['file.broken', expect.objectContaining({ path }), expect.any(String)],
  ])
  sources.recordIn({
    keep: () => Promise.resolve(),
    changed: () => Promise.resolve(),
    refused: ({ file: name }, reason) => Promise.resolve(void refused.push(`${name}: ${reason}`)),
  })
  expect(refused).toEqual([expect.stringContaining('resource_groups: line 1')])
  expect(texts).toEqual({ resource_groups: good })
})
