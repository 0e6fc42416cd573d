import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/load-config.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { endLeftBehind, holderOf } from '../supervisor/data-folder-lock.ts'
import { endForeignPostgres } from '../supervisor/embedded-postgres.ts'
import { handOverDataFolder, handOverTables } from '../supervisor/hand-over.ts'
import {
  becomeUser,
  isRoot,
  lookUpGroup,
  lookUpUser,
  serviceUser,
  withRightsOf,
  type PosixUser,
} from '../supervisor/posix-user.ts'
import { linkPostgresLibraries } from '../supervisor/postgres-binaries.ts'
import { lakesOf, memoryCatalogs } from './lakes-of.ts'
import { hasCode, nodeCode } from '../shared/node-error.ts'

type Print = (line: string) => void
/** Settings whose value is a file that is read. */
const NAMES_FILE = /File$|^(anchorKey|tlsCert|tlsKey)$/
const ROOT = /^(root|0)(:|$)/

/**
 * Started as root, makes this process another user's for good, the data folder with it: `--run-as`, else who owns the data
 * folder, else a user of the system for such programs. It stays root when told so, or when nothing is said and that user
 * could not read what is configured; then it says why.
 * @param before done as root when it is sure that this process becomes that user; gives groups that it needs then
 * @returns whose it is now; undefined where nothing changed
 * @throws ExitError 64 when it cannot be the user that was asked for, or its folders cannot be given to that user
 */
export async function leaveRoot(
  config: Config,
  print: Print,
  before: (user: PosixUser) => Promise<readonly number[]> = async () => [],
): Promise<PosixUser | undefined> {
  if (!isRoot()) return void refuseOthers(config)
  if (config.runAs !== undefined && ROOT.test(config.runAs)) {
    print('Runs as root, as --run-as says: whatever breaks into it has the whole machine')
    return undefined
  }
  const user = config.runAs === undefined ? defaultUser(config) : namedUser(config.runAs)
  const obstacle = user === undefined ? 'this system has no user for it' : obstacleFor(user, config)
  if (user === undefined || obstacle !== undefined) {
    if (config.runAs !== undefined) throw refusal(config.runAs, obstacle!)
    print(`Runs as root, since ${obstacle}: --run-as names another user, or root`)
    return undefined
  }
  try {
    await handOver(config, user)
  } catch (error) {
    // Who lived in the folder could otherwise have the next start, and its engines, stay root.
    const why = (error as Error).message
    if (config.runAs !== undefined) throw refusal(config.runAs, why)
    throw new ExitError(exitCodes.configuration, `Cannot become user ${user.name}: ${why} (--run-as root stays root)`)
  }
  becomeUser(user, await before(user))
  return user
}

/** One line for each catalog that a user who is no longer root cannot write. */
export function printUnwritable(config: Config, user: PosixUser, print: Print): void {
  for (const { catalog, folder, readOnly } of lakesOf(config)) {
    if (readOnly) continue
    const closed = [folder, ...subfolders(folder)].find((path) => !mayWrite(path))
    if (closed === undefined) continue
    print(
      `User ${user.name} cannot write ${closed} (catalog ${catalog}): it is read, writes fail with PERMISSION_DENIED; ` +
        `chown it, or name its owner with --run-as`,
    )
  }
}

function refuseOthers({ runAs }: Config): void {
  if (runAs === undefined) return
  const { username, uid } = userInfo()
  const [name] = runAs.split(':')
  if (name !== username && name !== String(uid))
    throw refusal(runAs, `this is user ${username}, and only root can become another`)
}

function namedUser(text: string): PosixUser {
  const [name = '', group, ...rest] = text.split(':')
  const user = name === '' || rest.length > 0 ? undefined : lookUpUser(numbered(name))
  if (user === undefined) throw refusal(text, `there is no user ${name}`)
  if (group === undefined) return user
  const gid = lookUpGroup(numbered(group))
  if (gid === undefined) throw refusal(text, `there is no group ${group}`)
  return { ...user, gid }
}

function numbered(name: string): string | number {
  return /^\d{1,10}$/.test(name) ? Number(name) : name
}

/** Who owns the data folder, or what it is made in; where that is root, the database in it, or the folder of tables. */
function defaultUser({ dataDir, tablesDir }: Config): PosixUser | undefined {
  const { uid } = statSync(nearest(dataDir))
  if (uid !== 0) return lookUpUser(uid)
  const cluster = lstatSync(join(dataDir, 'postgres'), { throwIfNoEntry: false })
  if (cluster?.isDirectory() && cluster.uid !== 0) return lookUpUser(cluster.uid)
  const tables = tablesDir === undefined ? undefined : statSync(tablesDir, { throwIfNoEntry: false })
  if (tables?.isDirectory() && tables.uid !== 0) return lookUpUser(tables.uid)
  return serviceUser()
}

/** The folder, or the last above it that is there. */
function nearest(folder: string): string {
  let path = folder
  while (!existsSync(path)) path = dirname(path)
  return path
}

/** Why a user could not run what is configured. */
function obstacleFor(user: PosixUser, config: Config): string | undefined {
  const root = (['owner', 'standby'] as const)
    .map((role) => holderOf(config.dataDir, role))
    .find((one) => one?.uid === 0)
  if (root) return `process ${root.pid} runs on ${config.dataDir} as root`
  let looked = ''
  const look = (path: string, read: (path: string) => unknown): void => {
    looked = path
    read(path)
  }
  const openOnce = (path: string): void => closeSync(openSync(path, constants.O_RDONLY))
  try {
    withRightsOf(user, () => {
      look(process.execPath, openOnce)
      look(fileURLToPath(import.meta.url), openOnce)
      look(fileURLToPath(import.meta.resolve('pg')), openOnce)
      look(existsSync(config.dataDir) ? dirname(realpathSync(config.dataDir)) : nearest(config.dataDir), (path) =>
        statSync(`${path}/.`),
      )
      if (existsSync(config.catalogDir)) {
        look(config.catalogDir, readdirSync)
        for (const name of readdirSync(config.catalogDir)) {
          if (name.endsWith('.json')) look(join(config.catalogDir, name), openOnce)
        }
      }
      for (const [name, path] of Object.entries(config))
        if (NAMES_FILE.test(name) && typeof path === 'string') look(path, openIfThere)
      for (const { folder } of lakesOf(config)) look(folder, readdirSync)
    })
    return undefined
  } catch (error) {
    const code = nodeCode(error)
    if (code === 'EACCES' || code === 'EPERM') return `user ${user.name} cannot read ${looked}`
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    return `it cannot become user ${user.name} (${code ?? (error as Error).message})`
  }
}

function openIfThere(path: string): void {
  try {
    closeSync(openSync(path, constants.O_RDONLY))
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/** What only root can do: end what ran here as another user, and give the user what is its own now. */
async function handOver(config: Config, user: PosixUser): Promise<void> {
  const { dataDir, tablesDir } = config
  await endLeftBehind(dataDir)
  await endForeignPostgres(dataDir, user)
  linkPostgresLibraries()
  // First, since it may be refused.
  if (tablesDir !== undefined) handOverTables(resolve(tablesDir), memoryCatalogs(config), user)
  handOverDataFolder(dataDir, user)
}

function subfolders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name))
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function refusal(runAs: string, why: string): ExitError {
  return new ExitError(exitCodes.configuration, `--run-as ${runAs}: ${why}`)
}
