import { existsSync } from 'node:fs'
import type { KeyObject } from 'node:crypto'
import type { Config } from '../config/load-config.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { publicKeyPath, readPublicKeys } from '../security/anchor-key.ts'
import { filesOf } from './command-flags.ts'

/**
 * The trusted keys: those of the files that `--public-key` names, else the public key beside the anchor key of the
 * settings; undefined if there is none.
 * @throws ExitError 64
 */
export function believedKeys(
  config: Config,
  named: readonly (string | boolean)[] | undefined,
): readonly KeyObject[] | undefined {
  const files = filesOf('public-key', named)
  if (files) return files.flatMap(readPublicKeys)
  const path = publicKeyPath(anchorPaths(config).key)
  return existsSync(path) ? readPublicKeys(path) : undefined
}
