import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockDataFolder } from '../../src/supervisor/data-folder-lock.ts'
import { handOverDataFolder, makeFolderFor } from '../../src/supervisor/hand-over.ts'
import { lookUpGroup, lookUpUser, withRightsOf } from '../../src/supervisor/posix-user.ts'

/** The id of an engine's user. */
const ENGINE = 1_999_999_999
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-hand-over-'))
  chmodSync(folder, 0o711)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const uidOf = (...parts: string[]): number => lstatSync(join(folder, ...parts)).uid

describe.runIf(process.getuid?.() === 0)('The hand-over of a folder by root', () => {
  const user = lookUpUser('nobody')!

  it("gives the user root's folder and the files of Quipu in it, and nothing else", () => {
    mkdirSync(join(folder, 'data', 'worker-1', 'pages'), { recursive: true })
    for (const name of ['supervisor.json', 'secret.1234', 'worker-1/pages/1.json', 'notes.txt'])
      writeFileSync(join(folder, 'data', name), '')
    writeFileSync(join(folder, 'outside'), '')
    symlinkSync(join(folder, 'outside'), join(folder, 'data', 'worker-1', 'link'))
    handOverDataFolder(join(folder, 'data'), user)
    for (const name of ['', 'supervisor.json', 'secret.1234', 'worker-1', 'worker-1/pages/1.json', 'worker-1/link'])
      expect(uidOf('data', name), name).toBe(user.uid)
    expect([uidOf('data', 'notes.txt'), uidOf('outside')]).toEqual([0, 0])
  })

  it('follows no link that the user put into its own folder', () => {
    mkdirSync(join(folder, 'data'))
    mkdirSync(join(folder, 'roots'))
    for (const name of ['roots/file', 'second']) writeFileSync(join(folder, name), '')
    symlinkSync(join(folder, 'roots'), join(folder, 'data', 'tables'))
    symlinkSync(join(folder, 'roots'), join(folder, 'data', 'postgres'))
    linkSync(join(folder, 'second'), join(folder, 'data', 'secret'))
    // Root owns these, as after a start that ran as root.
    mkdirSync(join(folder, 'data', 'coordinator', 'engines'), { recursive: true })
    writeFileSync(join(folder, 'data', 'supervisor.json'), '')
    chownSync(join(folder, 'data'), user.uid, user.gid)
    handOverDataFolder(join(folder, 'data'), user)
    expect([uidOf('roots'), uidOf('roots', 'file'), uidOf('second')]).toEqual([0, 0, 0])
    for (const name of ['supervisor.json', 'coordinator/engines']) expect(uidOf('data', name)).toBe(user.uid)
  })

  it('removes what engines left, however deep it is, and follows no links in it', () => {
    const data = join(folder, 'data')
    const spill = join(data, 'worker-1', 'spill', '0')
    mkdirSync(spill, { recursive: true })
    writeFileSync(join(data, 'supervisor.json'), '')
    writeFileSync(join(folder, 'outside'), '')
    symlinkSync(folder, join(spill, 'link'))
    linkSync(join(folder, 'outside'), join(spill, 'second'))
    execFileSync(process.execPath, [
      '-e',
      `process.chdir(process.argv[1]); for (let i = 0; i < 15000; i++) { fs.mkdirSync('d'); process.chdir('d') }`,
      spill,
    ])
    for (const path of [spill, join(spill, 'd')]) chownSync(path, ENGINE, ENGINE)
    chmodSync(join(spill, 'd'), 0)
    for (const path of [data, join(data, 'worker-1'), join(data, 'worker-1', 'spill')])
      chownSync(path, user.uid, user.gid)
    handOverDataFolder(data, user)
    expect(readdirSync(join(data, 'worker-1', 'spill'))).toEqual([])
    expect([uidOf('outside'), uidOf('')]).toEqual([0, 0])
  })

  it('leaves the files of engines that still run', async () => {
    const data = join(folder, 'data')
    mkdirSync(data)
    const lock = await lockDataFolder(data)
    try {
      const written = ['worker-1', 'standby-worker-1'].map((name) => join(data, name, 'engines', '0', 'own', 'write-1'))
      for (const path of written) {
        mkdirSync(path, { recursive: true })
        chownSync(path, ENGINE, ENGINE)
      }
      for (const name of ['', 'worker-1', 'standby-worker-1']) chownSync(join(data, name), user.uid, user.gid)
      handOverDataFolder(data, user)
      expect(written.map((path) => lstatSync(path, { throwIfNoEntry: false })?.uid)).toEqual([ENGINE, undefined])
    } finally {
      lock.release()
    }
  })

  it('refuses a folder that holds other things', () => {
    mkdirSync(join(folder, 'data', 'run'), { recursive: true })
    expect(() => handOverDataFolder(join(folder, 'data'), user)).toThrow(/holds files that are not of Quipu/)
    expect([uidOf('data'), uidOf('data', 'run')]).toEqual([0, 0])
  })

  it.each(['lost+found', 'postgres/PG_VERSION'])('accepts a folder that holds only %s', (name) => {
    mkdirSync(join(folder, 'data', name), { recursive: true })
    handOverDataFolder(join(folder, 'data'), user)
    expect([uidOf('data'), uidOf('data', name)]).toEqual([user.uid, name === 'lost+found' ? 0 : user.uid])
  })

  it.each(['that is there', 'that is missing'])('lets several starts hand over a tables folder %s', async (what) => {
    const rounds = 40
    const program = `
      const { handOverTables } = await import(process.argv[1])
      const user = JSON.parse(process.argv[2])
      for (let round = 0; round < ${rounds}; round++) {
        while (Date.now() < Number(process.argv[4]) + round * 25);
        handOverTables(process.argv[3] + '/' + round, ['memory'], user)
      }`
    if (what === 'that is there') for (let round = 0; round < rounds; round++) mkdirSync(join(folder, String(round)))
    const module = new URL('../../dist/supervisor/hand-over.js', import.meta.url).href
    const begin = String(Date.now() + 1500)
    const args = ['--input-type=module', '-e', program, module, JSON.stringify(user), folder, begin]
    const starts = Array.from({ length: 3 }, () => promisify(execFile)(process.execPath, args))
    expect(await Promise.all(starts)).toEqual(starts.map(() => ({ stdout: '', stderr: '' })))
    for (let round = 0; round < rounds; round++) expect(uidOf(String(round))).toBe(user.uid)
  })

  it('makes missing folders so that the user can enter them', () => {
    makeFolderFor(join(folder, 'a', 'b', 'data'), user)
    expect([uidOf('a'), uidOf('a', 'b'), uidOf('a', 'b', 'data')]).toEqual([0, 0, user.uid])
    expect([statSync(join(folder, 'a', 'b')).mode & 0o777, statSync(join(folder, 'a/b/data')).mode & 0o777]).toEqual([
      0o711, 0o700,
    ])
    withRightsOf(user, () => mkdirSync(join(folder, 'a', 'b', 'data', 'mine')))
    makeFolderFor(join(folder, 'a', 'b', 'data', 'mine', 'too'), user)
    expect(uidOf('a', 'b', 'data', 'mine', 'too')).toBe(user.uid)
  })

  it("takes a user's rights for one call only, and finds no account for an unknown name", () => {
    writeFileSync(join(folder, 'closed'), '', { mode: 0o600 })
    const groups = process.getgroups!()
    expect(() => withRightsOf(user, () => rmSync(join(folder, 'closed')))).toThrow(/EACCES/)
    expect([process.geteuid!(), process.getegid!(), process.getgroups!()]).toEqual([0, 0, groups])
    expect(existsSync(join(folder, 'closed'))).toBe(true)
    expect([lookUpUser('no such user'), lookUpGroup('no such group')]).toEqual([undefined, undefined])
    expect(lookUpUser(61_999)).toEqual({ name: '61999', uid: 61_999, gid: 61_999 })
  })
})
