import { readdirSync, readFileSync } from 'node:fs'

/** The users (real, effective, saved, of files) and groups of a process, as the kernel tells them. */
export function usersOf(pid: number): { readonly uids: readonly number[]; readonly gids: readonly number[] } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const numbers = (name: string): number[] =>
    (new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '').split(/\s+/).filter(Boolean).map(Number)
  return { uids: numbers('Uid'), gids: [...new Set([...numbers('Gid'), ...numbers('Groups')])].sort((a, b) => a - b) }
}

/**
 * All processes below one, itself first.
 * @param except is asked of each: those for whom it is true are left out, with all below them
 */
export function familyOf(pid: number, except: (pid: number) => boolean = () => false): number[] {
  const parents = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      parents.set(parent, [...(parents.get(parent) ?? []), Number(name)])
    } catch {
      // It ended meanwhile.
    }
  }
  const below = (one: number): number[] => (except(one) ? [] : [one, ...(parents.get(one) ?? []).flatMap(below)])
  return below(pid)
}

/** What a process was started with, in one text; empty when it is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
