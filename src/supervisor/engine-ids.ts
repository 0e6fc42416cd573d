import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'

/**
 * Numbers of the users and groups that engines get if root started Quipu. None of them has a name, a password or a
 * home.
 */
export interface EngineIds {
  /**
   * The group of all engines that read the same tables. It opens the folders above theirs, and the tables of `memory`.
   */
  readonly gate: number
  /** User and group of the first slot of the first process. The other slots follow, process by process. */
  readonly first: number
  /** How many slots each process has. */
  readonly slots: number
}

interface Range {
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly block: number
}

// useradd, subuid, systemd and nspawn give these numbers to no user. With 16-bit users, as in containers: systemd's
// dynamic users.
const RANGES: readonly Range[] = [
  { from: 0x7002_0000, to: 0x7fff_0000, block: 4096 },
  { from: 61_184, to: 65_520, block: 512 },
]

/**
 * The ids of a start on a data folder. They are the same at every start, and different for another folder and for a
 * stand-by. They are never those of a running start: with few numbers, two folders may hash to the same ids.
 * @param use.tablesDir its group becomes the gate if it already is an engine group, because other machines may share
 * the folder
 * @returns undefined if the system has no room for them
 */
export function engineIds(use: {
  readonly dataDir: string
  readonly tablesDir: string
  readonly standby: boolean
  readonly processes: number
  readonly slots: number
}): EngineIds | undefined {
  const range = RANGES.find(isMapped)
  if (range === undefined || use.processes * use.slots > range.block) return undefined
  const middle = (range.from + range.to) / 2
  const blocks = Math.floor((middle - range.from) / range.block)
  const meant = hash(`${realOf(use.dataDir)}${use.standby ? '\nstand-by' : ''}`) % blocks
  const taken = new Set(groupsOfLiveStarts().map((id) => Math.floor((id - range.from) / range.block)))
  const chosen = Array.from({ length: blocks }, (_, index) => (meant + index) % blocks).find((one) => !taken.has(one))
  if (chosen === undefined) return undefined
  const shared = statSync(use.tablesDir, { throwIfNoEntry: false })?.gid
  return {
    gate:
      shared !== undefined && isEngineGroup(shared)
        ? shared
        : middle + (hash(realOf(use.tablesDir)) % (range.to - middle)),
    first: range.from + chosen * range.block,
    slots: use.slots,
  }
}

/** User and group of one slot. */
export function idOfSlot({ first, slots }: EngineIds, process: number, slot: number): number {
  return first + process * slots + slot
}

/** All groups that the parents of engines need to share folders with them. */
export function groupsOfParents(ids: EngineIds, processes: number): number[] {
  return [ids.gate, ...Array.from({ length: processes * ids.slots }, (_, index) => ids.first + index)]
}

/** Whether only engines and their parents have this group. */
export function isEngineGroup(gid: number): boolean {
  return RANGES.some(({ from, to }) => gid >= from && gid < to)
}

/** The engine groups of all running parents, of any user. Engines that were left running have no parent any more. */
function groupsOfLiveStarts(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, 'latin1')
        if (/^State:\t[ZX]/m.test(status)) return []
        const user = Number(/^Uid:\t(\d+)/m.exec(status)?.[1])
        const groups = /^Groups:\t(.*)$/m.exec(status)?.[1] ?? ''
        return isEngineGroup(user) ? [] : groups.trim().split(' ').map(Number).filter(isEngineGroup)
      } catch {
        return []
      }
    })
}

/** Whether this range of user numbers exists: a container may map only some. */
function isMapped({ from, to }: Range): boolean {
  return ['uid_map', 'gid_map'].every((name) => {
    try {
      return readFileSync(`/proc/self/${name}`, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number))
        .some(([inside = 0, , count = 0]) => inside <= from && to <= inside + count)
    } catch {
      return false
    }
  })
}

function hash(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32LE(0)
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
