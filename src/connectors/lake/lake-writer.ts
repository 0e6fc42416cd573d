import type { ConnectorWriter } from '../spi/table-writer.ts'
import { createAttempts } from './attempts.ts'
import type { AskFiles } from './changed-rows.ts'
import { ChangeTargets, mayAdopt, type ChangeTargetsDeps } from './change-targets.ts'
import { gone, LakeCommits } from './lake-commits.ts'
import { sweepLake } from './sweep.ts'
import type { OnStep } from './version-chain.ts'

const DAY_MS = 24 * 3_600_000

export interface LakeWriterDeps extends ChangeTargetsDeps {
  /** Answers questions about written files; needed only where rows are written. */
  readonly inspect: AskFiles
  /** How long versions are kept after the next one was made, milliseconds. @default a day */
  readonly keptMillis?: number
  /** Wall clock, milliseconds. */
  readonly now?: () => number
  /** Called at each step of a commit, for tests of crashes. */
  readonly onStep?: OnStep
}

/** Writes of a lake: every change is a new version of one manifest, created unless it exists. */
export function createLakeWriter(deps: LakeWriterDeps): ConnectorWriter {
  const { catalog, location, folders } = deps
  const targets = new ChangeTargets(deps)
  const commits = new LakeCommits({ ...deps, targets })
  return {
    async begin(queryId, change, analyzed) {
      const { resolved, folder } = await targets.resolve(change)
      if (analyzed) targets.checkAnalyzed(change, resolved, analyzed)
      await targets.checkFolders(change, folder)
      if (change.kind === 'renameSchema') await targets.checkFolders({ schema: change.to })
      else if ('to' in change) await targets.checkFolders(change.to)
      return { catalog, queryId, change, ...resolved }
    },
    ...createAttempts(folders, deps.inspect),
    async prepare(target, files) {
      const { change } = target
      const { resolved, folder } = await targets.resolve(change, target)
      if (target.tableId !== resolved.tableId) throw gone(`Table '${targets.nameOf(change)}'`)
      const adopts = 'table' in change && mayAdopt(change) && resolved.baseVersion === 0
      await (adopts ? targets.checkObject(change) : targets.checkFolders(change, folder))
      const cascade =
        change.kind === 'renameSchema' || (change.kind === 'dropSchema' && change.cascade)
          ? { cascade: (await folders.list(change.schema)).map(({ table }) => table) }
          : {}
      for (const table of cascade.cascade ?? []) await targets.checkObject({ schema: change.schema, table })
      return { ...target, baseVersion: resolved.baseVersion, files: [...files], ...cascade }
    },
    commit: (prepared) => commits.commit(prepared),
    find: (prepared) => commits.find(prepared),
    sweep: (options) => sweepLake(location, deps.keptMillis ?? DAY_MS, options),
  }
}
