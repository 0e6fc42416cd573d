/** `&` at the end of a command, but not `&&`: npm's shell does not wait for such a command. */
const IN_BACKGROUND = /(^|[^&])&\s*$/
const LOOK_MS = 500

/**
 * Whether npm (npx, pnpm, yarn) runs this program in the foreground. A program that one of npm's scripts started
 * inherits the same variables, so the script's text is checked.
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
