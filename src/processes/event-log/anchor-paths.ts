import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'

/** Where a configuration stores the key and the anchors. */
export function anchorPaths(config: Config): { readonly key: string; readonly file: string } {
  return {
    key: config.anchorKey ?? join(config.dataDir, 'anchor-key.pem'),
    file: config.anchorFile ?? join(config.dataDir, 'anchors.jsonl'),
  }
}
