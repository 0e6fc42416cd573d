import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.ts'

const root = new URL('../../', import.meta.url)
const units = readdirSync(new URL('deploy/systemd', root))
const folder = mkdtempSync(join(tmpdir(), 'quipu-systemd-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = promisify(execFile)
const installed = await run('systemd-analyze', ['--version']).then(
  () => true,
  (error: unknown) => {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write('SKIPPED: no systemd-analyze (apt-get install systemd)\n')
    return false
  },
)

function textOf(unit: string): string {
  return readFileSync(new URL(`deploy/systemd/${unit}`, root), 'utf8')
}

describe('The systemd units', () => {
  it.runIf(installed)('are accepted by systemd', async () => {
    for (const unit of units) {
      // On this machine Node.js and the project are in other folders.
      const text = textOf(unit)
        .replaceAll('/usr/bin/node', process.execPath)
        .replaceAll('/opt/quipu', root.pathname.slice(0, -1))
      writeFileSync(join(folder, unit), text)
    }
    mkdirSync(join(folder, 'empty'))
    const paths = units.map((unit) => join(folder, unit))
    const { stderr } = await run('systemd-analyze', ['verify', '--recursive-errors=no', ...paths], {
      env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:/lib/systemd/system` },
    })
    expect(stderr.split('\n').filter((line) => line.includes('quipu'))).toEqual([])
  })

  it.each([
    ['quipu-coordinator.service', 'coordinator'],
    ['quipu-worker.service', 'worker'],
    ['quipu-audit.service', 'audit'],
  ])('%s starts an existing command with settings that Quipu accepts', (unit, command) => {
    const [, program, ...args] = /^ExecStart=\S+ (\S+) (.*)$/m
      .exec(textOf(unit))!
      .slice(0, 3)
      .flatMap((part, index) => (index === 2 ? part.split(' ') : [part]))
    expect(program).toBe('/opt/quipu/dist/cli/quipu.js')
    expect(args[0]).toBe(command)
    const settings = args.slice(1).filter((arg) => arg !== 'verify' && arg !== '--read-models')
    expect(loadConfig(settings, {}).dataDir).toBe('/var/lib/quipu')
  })
})
