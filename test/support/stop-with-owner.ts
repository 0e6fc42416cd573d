import { spawn } from 'node:child_process'

/**
 * Ends a process once this one is gone: a harness that was killed leaves no server behind.
 * @param name what ends it in order
 */
export function stopWithOwner(pid: number, name: 'TERM' | 'INT' = 'TERM'): void {
  const watch = `while kill -0 ${process.pid} && kill -0 ${pid}; do sleep 1; done; kill -${name} ${pid}; kill -CONT ${pid}`
  spawn('/bin/sh', ['-c', `{ ${watch}; } 2>/dev/null`], { detached: true, stdio: 'ignore' }).unref()
}
