import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { usableBinaries } from '../../src/supervisor/postgres-binaries.ts'

it('A copy of the Postgres binaries can be run by its user, even if this process has a strict umask', () => {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-binaries-'))
  const before = process.umask(0o077)
  try {
    const root = join(folder, 'package', 'native')
    const copies = join(folder, 'copies')
    mkdirSync(join(root, 'bin'), { recursive: true })
    mkdirSync(copies)
    writeFileSync(join(root, 'bin', 'initdb'), '')
    chmodSync(join(root, 'bin', 'initdb'), 0o755)
    // The other user cannot enter the package's folder, because it is private to this user.
    const other = { name: 'other', uid: 65533, gid: 65533 }
    const { root: copy } = usableBinaries({ root, version: '0' }, other, copies, () => {})
    const modes = ['', 'bin', 'bin/initdb'].map((name) => (statSync(join(copy, name)).mode & 0o777).toString(8))
    expect(modes).toEqual(['755', '755', '755'])
  } finally {
    process.umask(before)
    rmSync(folder, { recursive: true, force: true })
  }
})
