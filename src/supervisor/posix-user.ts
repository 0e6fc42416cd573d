import { lstatSync, realpathSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'

export interface PosixUser {
  /** The user's name, or the number as text if the system has no name for it. */
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home?: string
}

/** Whether this process may become another user. */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * The system's entry of a user; undefined if there is no such user. Needs root: the lookup becomes that user for a
 * moment.
 */
export function lookUpUser(user: string | number): PosixUser | undefined {
  try {
    process.seteuid!(user)
  } catch {
    return undefined
  }
  try {
    const uid = process.geteuid!()
    try {
      const { username, gid, homedir } = userInfo()
      return { name: username, uid, gid, home: homedir }
    } catch {
      // A number without an entry has no group of its own either.
      return { name: String(uid), uid, gid: uid }
    }
  } finally {
    process.seteuid!(0)
  }
}

/** The number of a group; undefined if no group has this name. Needs root. */
export function lookUpGroup(group: string | number): number | undefined {
  const before = process.getegid!()
  try {
    process.setegid!(group)
    return process.getegid!()
  } catch {
    return undefined
  } finally {
    process.setegid!(before)
  }
}

/**
 * Runs `work` with the rights of a user, then is root again. Use it to check what that user may do: meanwhile no other
 * process can trace this one.
 */
export function withRightsOf<T>(user: PosixUser, work: () => T): T {
  const groups = process.getgroups!()
  const group = process.getegid!()
  try {
    takeGroups(user)
    process.setegid!(user.gid)
    process.seteuid!(user.uid)
    return work()
  } finally {
    process.seteuid!(0)
    process.setegid!(group)
    process.setgroups!(groups)
  }
}

/**
 * Makes this process run as a user for good, with the user's groups and the environment variables that `su` sets.
 * @param groups further groups
 * @throws Error when the process could not become that user; the caller must not continue then
 */
export function becomeUser(user: PosixUser, groups: readonly number[] = []): void {
  takeGroups(user)
  process.setgid!(user.gid)
  // Only after setgid: Node counts the current group among the process's groups.
  if (groups.length > 0) process.setgroups!([...process.getgroups!(), ...groups])
  process.setuid!(user.uid)
  let back = true
  try {
    process.setuid!(0)
  } catch {
    back = false
  }
  if (back || process.getuid!() !== user.uid || process.geteuid!() !== user.uid || process.getegid!() !== user.gid)
    throw new Error(`This process could not become user ${user.name}`)
  Object.assign(process.env, { USER: user.name, LOGNAME: user.name, HOME: user.home ?? '/' })
}

function takeGroups({ name, uid, gid }: PosixUser): void {
  if (name === String(uid)) process.setgroups!([gid])
  else initgroups.call(process, name, gid)
}

/** Node documents this function, but its types lack it. */
const { initgroups } = process as unknown as { initgroups(user: string, group: number): void }

/**
 * The user that Postgres runs as if this process is root, because Postgres refuses to run as root: the owner of its
 * cluster, else `postgres` if the system has that user, else `nobody`. Undefined if this process is not root: Postgres
 * then runs as this process's user.
 */
export function postgresUser(cluster?: string): PosixUser | undefined {
  if (!isRoot()) return undefined
  const owner = cluster === undefined ? undefined : lstatSync(cluster, { throwIfNoEntry: false })
  if (owner?.isDirectory() && owner.uid !== 0) return lookUpUser(owner.uid)
  const user = serviceUser()
  if (user) return user
  throw new Error(
    'Postgres cannot run as root, and this system has no user postgres or nobody: set DATABASE_URL, or add such a user',
  )
}

/** The system's user for programs without a user of their own. Needs root. */
export function serviceUser(): PosixUser | undefined {
  for (const name of ['quipu', 'postgres', 'nobody']) {
    const user = lookUpUser(name)
    if (user) return user
  }
  return undefined
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
