import { execFileSync } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

export interface PosixUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/**
 * The user that Postgres runs as: it refuses to run as root, so `postgres` where the system has one, else `nobody`.
 * Undefined when this process is not root: then it is simply this process's user.
 */
export function postgresUser(): PosixUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    try {
      const ask = (flag: string) =>
        Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
      return { name, uid: ask('-u'), gid: ask('-g') }
    } catch {
      // No such user: the next one.
    }
  }
  throw new Error('Postgres does not run as root, and this system has neither a user postgres nor nobody')
}

/** Whether `user` may enter `folder` and read in it, by the modes of all its parents. */
export function canEnter(folder: string, user: PosixUser): boolean {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    const { mode, uid, gid } = statSync(path)
    const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode
    if ((bits & 1) === 0) return false
    if (path === dirname(path)) return true
  }
}
