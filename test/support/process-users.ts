import { readdirSync, readFileSync } from 'node:fs'

/** The users (real, effective, saved, of files) and groups of a process, from the kernel. */
export function usersOf(pid: number): { readonly uids: readonly number[]; readonly gids: readonly number[] } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const numbers = (name: string): number[] =>
    (new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '').split(/\s+/).filter(Boolean).map(Number)
  return { uids: numbers('Uid'), gids: [...new Set([...numbers('Gid'), ...numbers('Groups')])].sort((a, b) => a - b) }
}

/**
 * A process and all processes below it, itself first.
 * @param except returns true for processes to leave out, with all processes below them
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
      // The process ended meanwhile.
    }
  }
  const below = (one: number): number[] => (except(one) ? [] : [one, ...(parents.get(one) ?? []).flatMap(below)])
  return below(pid)
}

/** The command line of a process as one text; empty when the process is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
