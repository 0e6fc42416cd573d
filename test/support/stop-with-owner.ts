import { spawn } from 'node:child_process'

/**
 * Ends a process once this process is gone, so that a killed harness leaves no server behind.
 * @param name the signal that ends it cleanly
 */
export function stopWithOwner(pid: number, name: 'TERM' | 'INT' = 'TERM'): void {
  const watch = `while kill -0 ${process.pid} && kill -0 ${pid}; do sleep 1; done; kill -${name} ${pid}; kill -CONT ${pid}`
  spawn('/bin/sh', ['-c', `{ ${watch}; } 2>/dev/null`], { detached: true, stdio: 'ignore' }).unref()
}
