/**
 * Folders and files of tests that leave nothing behind, neither in globals nor in processes: one process runs file after file
 * of them, which saves each its start and the loading of what the one before has loaded.
 */
const SHARING =
  /^[\w-]+\.test\.ts$|^(cli|config|connectors|coordinator|execution\/(api|worker)|processes|protocol|publishing|replay|security|shared|sql|telemetry|ui)\//

const OF_THEIR_OWN: readonly RegExp[] = [
  /\.(int|e2e)\.test\.ts$/,
  /^connectors\/lake\/commit-crash\.test\.ts$/,
  // It sets a flag of V8.
  /^publishing\/publisher\.test\.ts$/,
]

/** @param file below `test/` */
export function sharesProcess(file: string): boolean {
  return SHARING.test(file) && !OF_THEIR_OWN.some((own) => own.test(file))
}
