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
/** Settings whose value is the path of a file that is read. */
const NAMES_FILE = /File$|^(anchorKey|tlsCert|tlsKey)$/
const ROOT = /^(root|0)(:|$)/

/**
 * If this process was started as root, makes it another user for good, and gives that user the data folder. The user is
 * that of `--run-as`, else the owner of the data folder, else the system's user for such programs. The process stays
 * root if `--run-as` says so. It also stays root, and prints the reason, if there is no `--run-as` and that user could
 * not read the configured files.
 * @param before called as root once it is certain that this process becomes that user; returns further groups that it
 * needs
 * @returns the new user; undefined if nothing changed
 * @throws ExitError 64 when it cannot become the requested user, or the user cannot get its folders
 */
export async function leaveRoot(
  config: Config,
  print: Print,
  before: (user: PosixUser) => Promise<readonly number[]> = async () => [],
): Promise<PosixUser | undefined> {
  if (!isRoot()) return void refuseOthers(config)
  if (config.runAs !== undefined && ROOT.test(config.runAs)) {
    print('Runs as root because of --run-as: an attacker who takes over this process controls the whole machine')
    return undefined
  }
  const user = config.runAs === undefined ? defaultUser(config) : namedUser(config.runAs)
  const obstacle = user === undefined ? 'this system has no user for Quipu' : obstacleFor(user, config)
  if (user === undefined || obstacle !== undefined) {
    if (config.runAs !== undefined) throw refusal(config.runAs, obstacle!)
    print(`Runs as root, because ${obstacle}: set --run-as to another user, or to root to accept this`)
    return undefined
  }
  try {
    await handOver(config, user)
  } catch (error) {
    // Otherwise the user that owned the folder could make the next start, and its engines, run as root.
    const why = (error as Error).message
    if (config.runAs !== undefined) throw refusal(config.runAs, why)
    throw new ExitError(
      exitCodes.configuration,
      `Cannot become user ${user.name}: ${why} (with --run-as root it stays root)`,
    )
  }
  becomeUser(user, await before(user))
  return user
}

/** Prints a line for each catalog that a user other than root cannot write. */
export function printUnwritable(config: Config, user: PosixUser, print: Print): void {
  for (const { catalog, folder, readOnly } of lakesOf(config)) {
    if (readOnly) continue
    const closed = [folder, ...subfolders(folder)].find((path) => !mayWrite(path))
    if (closed === undefined) continue
    print(
      `User ${user.name} cannot write ${closed} (catalog ${catalog}): reads work, writes fail with PERMISSION_DENIED; ` +
        `change its owner (chown), or set --run-as to its owner`,
    )
  }
}

function refuseOthers({ runAs }: Config): void {
  if (runAs === undefined) return
  const { username, uid } = userInfo()
  const [name] = runAs.split(':')
  if (name !== username && name !== String(uid))
    throw refusal(runAs, `this process runs as user ${username}, and only root can become another user`)
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

/**
 * The owner of the data folder, or of the nearest existing parent. If that is root: the owner of the database in it, or
 * of the folder of tables.
 */
function defaultUser({ dataDir, tablesDir }: Config): PosixUser | undefined {
  const { uid } = statSync(nearest(dataDir))
  if (uid !== 0) return lookUpUser(uid)
  const cluster = lstatSync(join(dataDir, 'postgres'), { throwIfNoEntry: false })
  if (cluster?.isDirectory() && cluster.uid !== 0) return lookUpUser(cluster.uid)
  const tables = tablesDir === undefined ? undefined : statSync(tablesDir, { throwIfNoEntry: false })
  if (tables?.isDirectory() && tables.uid !== 0) return lookUpUser(tables.uid)
  return serviceUser()
}

/** The folder, or its nearest parent that exists. */
function nearest(folder: string): string {
  let path = folder
  while (!existsSync(path)) path = dirname(path)
  return path
}

/** Why a user could not run this configuration. */
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

/** Does what needs root: ends processes that ran here as another user, and gives the user its files. */
async function handOver(config: Config, user: PosixUser): Promise<void> {
  const { dataDir, tablesDir } = config
  await endLeftBehind(dataDir)
  await endForeignPostgres(dataDir, user)
  linkPostgresLibraries()
  // This comes first because it may be refused.
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
