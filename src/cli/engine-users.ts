import { closeSync, constants, existsSync, mkdirSync, openSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { enginesFolder, spillFolder, tablesFolder } from '../config/data-folders.ts'
import type { Config } from '../config/load-config.ts'
import { ENGINE_PROGRAM } from '../execution/engine/engine-program.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { hasCode } from '../shared/node-error.ts'
import { isHeld } from '../supervisor/data-folder-lock.ts'
import { openToEngines } from '../supervisor/engine-folders.ts'
import { engineIds, groupsOfParents, idOfSlot, type EngineIds } from '../supervisor/engine-ids.ts'
import { launchEngines, type EngineLaunch } from '../supervisor/engine-launch.ts'
import { killLeftOf } from '../supervisor/engine-users.ts'
import { withRightsOf, type PosixUser } from '../supervisor/posix-user.ts'
import { ENGINE_MODULE } from '../duckdb/engine-module-url.ts'
import { lakesOf, memoryFolders } from './lakes-of.ts'

/**
 * Threads and processes of an engine, besides four for each core, of which DuckDB takes one. Node takes about 25 with
 * its pools.
 */
const TASKS_OF_AN_ENGINE = 256

/** Engines with users of their own. */
export interface ApartEngines {
  readonly launch: EngineLaunch
  /** The further groups that processes which run engines need. */
  readonly groups: readonly number[]
}

/**
 * Forks the launcher of engines, as root, before this process becomes `user`. Does not fork it if engines must run as
 * `user` too. Also not if engine users could not read what is configured and the operator did not ask for them; then
 * prints a line.
 * @param folders of the processes that run engines, in the order of the supervisor's children
 * @throws ExitError 64 when the operator asked for them and they cannot be had
 */
export async function launchApart(
  config: Config,
  folders: readonly string[],
  user: PosixUser,
  print: (line: string) => void,
): Promise<ApartEngines | undefined> {
  const asked = config.engineUsers === 'own'
  if (config.engineUsers === 'same' || isHeld(config.dataDir, config.standby ? 'standby' : 'owner')) return undefined
  const ids = engineIds({
    dataDir: config.dataDir,
    tablesDir: tablesFolder(config),
    standby: config.standby,
    processes: folders.length,
    // Engines that run, the spare, and engines that are about to end.
    slots: 2 * availableParallelism() + 8,
  })
  const obstacle = ids === undefined ? 'this system has no user ids for engines' : obstacleFor(ids, config)
  if (ids === undefined || (obstacle !== undefined && asked)) {
    if (asked) throw new ExitError(exitCodes.configuration, `--engine-users own: ${obstacle}`)
  }
  const unread = ids && obstacle === undefined ? unreadLakes(ids, config) : []
  const why = obstacle ?? unread[0]
  if (ids === undefined || (why !== undefined && !asked)) {
    print(
      `Engines also run as user ${user.name}, because ${why}; set --engine-users own to require users of their own, or same to accept this`,
    )
    return undefined
  }
  for (const each of unread) print(`Statements that read this folder fail with PERMISSION_DENIED: ${each}`)
  await killLeftOf(ids.first, folders.length * ids.slots)
  const launch = launchEngines({
    ids,
    folders: folders.map(enginesFolder),
    tasks: TASKS_OF_AN_ENGINE + 4 * availableParallelism(),
    program: ENGINE_PROGRAM.href,
    functionsModule: ENGINE_MODULE,
  })
  return { launch, groups: groupsOfParents(ids, folders.length) }
}

/** Opens the folders that engines pass through and read. Runs as the user of all other processes. */
export function openFoldersTo(
  { launch }: ApartEngines,
  config: Config,
  folders: readonly string[],
  print: (line: string) => void,
): void {
  const tables = tablesFolder(config)
  const memory = memoryFolders(config, tables)
  for (const folder of memory) if (!existsSync(folder)) makeMemoryFolder(folder)
  const { ids } = launch.plan
  const foreign = openToEngines(
    {
      passed: [
        resolve(config.dataDir),
        ...folders.flatMap((folder) => [folder, enginesFolder(folder), spillFolder(folder)]),
      ],
      read: [tables, ...memory],
    },
    ids.gate,
  )
  for (const folder of foreign)
    print(`${folder} belongs to another user: engines can read only its files that all users may read`)
}

/**
 * Makes the folder as the connector of `memory` would: if the schema `default` is dropped later, it does not come back.
 */
function makeMemoryFolder(folder: string): void {
  mkdirSync(join(folder, 'default'), { recursive: true, mode: 0o700 })
}

/** Why engines could not be started as users of their own. */
function obstacleFor(ids: EngineIds, config: Config): string | undefined {
  const user = engineUser(ids)
  const data = resolve(config.dataDir)
  const outside = tablesFolder(config)
  const parents = (outside.startsWith(`${data}/`) ? [data] : [data, outside]).map(nearestParent)
  return withRightsOf(user, () => {
    const files = [
      process.execPath,
      fileURLToPath(ENGINE_PROGRAM),
      fileURLToPath(ENGINE_MODULE),
      fileURLToPath(import.meta.resolve('@duckdb/node-api')),
    ]
    const closed =
      files.find((file) => !may(() => closeSync(openSync(file, constants.O_RDONLY)))) ??
      parents.find((folder) => !may(() => statSync(`${folder}/.`)))
    return closed === undefined ? undefined : `a user like ${user.name} cannot read ${closed}`
  })
}

/** A line for each lake that engines could not read. */
function unreadLakes(ids: EngineIds, config: Config): string[] {
  const user = engineUser(ids)
  return withRightsOf(user, () =>
    lakesOf(config)
      .filter(({ connector, folder }) => connector !== 'memory' && !may(() => readdirSync(folder)))
      .map(
        ({ catalog, folder }) =>
          `a user like ${user.name} cannot read ${folder} (catalog ${catalog}): let others read it (chmod o+rX)`,
      ),
  )
}

function engineUser(ids: EngineIds): PosixUser {
  const uid = idOfSlot(ids, 0, 0)
  return { name: String(uid), uid, gid: uid }
}

function may(look: () => unknown): boolean {
  try {
    look()
    return true
  } catch (error) {
    return !hasCode(error, 'EACCES', 'EPERM')
  }
}

function nearestParent(folder: string): string {
  let path = existsSync(folder) ? dirname(realpathSync(folder)) : dirname(folder)
  while (!existsSync(path)) path = dirname(path)
  return path
}
