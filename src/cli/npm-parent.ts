/** `&` at the end of a command, which is not `&&`: npm's shell does not wait for it. */
const IN_BACKGROUND = /(^|[^&])&\s*$/
const LOOK_MS = 500

/**
 * Whether npm (npx, pnpm, yarn) runs this very program in the foreground: a program that one of its scripts started
 * inherits the same variables.
 */
export function isRunByNpm(env: NodeJS.ProcessEnv): boolean {
  const script = env['npm_lifecycle_script'] ?? ''
  return /(^|[\s/'"])quipu(\.js)?(?=$|[\s'"])/.test(script) && !IN_BACKGROUND.test(script)
}

/**
 * Calls back once, when this process's parent is gone. A shell between npm and this process passes no signal on, and a
 * killed npm cannot.
 */
export function watchParent(gone: () => void): void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    gone()
  }, LOOK_MS).unref()
}
