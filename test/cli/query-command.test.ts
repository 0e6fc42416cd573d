import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'

const PROGRAM = new URL('../../dist/cli/quipu.js', import.meta.url).pathname

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function quipu(args: readonly string[], input = '', onStart?: (pid: number) => void): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'] } })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.stdin.end(input)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
    onStart?.(child.pid!)
  })
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A coordinator that answers with these bodies one after another; a number is a status, 'cut' closes the connection. */
async function coordinator(answers: (object | number | 'cut')[]): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  let next = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    seen.push({
      method: request.method!,
      path: request.url!,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    })
    if (request.method === 'DELETE') return void response.writeHead(204).end()
    const answer = answers[Math.min(next++, answers.length - 1)]!
    if (answer === 'cut') return void request.socket.destroy()
    if (typeof answer === 'number') return void response.writeHead(answer).end(JSON.stringify({ detail: 'Not now' }))
    const last = next === answers.length
    const body = {
      id: 'q1',
      ...(last ? {} : { nextUri: `${url}/v1/statement/q1/${next}` }),
      stats: { state: 'RUNNING' },
      ...answer,
    }
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
  })
  servers.push(server.listen(0, '127.0.0.1'))
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  return { url, seen }
}

const columns = [
  { name: 'n', type: 'integer' },
  { name: 'name', type: 'varchar' },
]

describe('quipu query', () => {
  it('follows the pages and prints an aligned table', async () => {
    const { url, seen } = await coordinator([{}, { columns, data: [[1, 'one']] }, { columns, data: [[20, 'twenty']] }])
    const run = await quipu(['query', '--server', url, '--user', 'ada', '--catalog', 'tpch', 'SELECT 1;'])
    expect(run).toEqual({ code: 0, stdout: ' n | name\n---+-------\n 1 | one\n20 | twenty\n', stderr: '' })
    expect(seen.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['POST', '/v1/statement', 'SELECT 1'],
      ['GET', '/v1/statement/q1/1', ''],
      ['GET', '/v1/statement/q1/2', ''],
    ])
    expect(seen[0]!.headers).toMatchObject({ 'x-engine-user': 'ada', 'x-engine-catalog': 'tpch' })
  })

  it('reads the statement from standard input', async () => {
    const { url, seen } = await coordinator([{ columns, data: [] }])
    expect(await quipu(['query', '--server', url], 'SELECT 2\n')).toMatchObject({
      code: 0,
      stdout: 'n | name\n--+-----\n',
    })
    expect(seen[0]!.body).toBe('SELECT 2')
  })

  it('exits with 1 and prints the error when the statement fails', async () => {
    const error = { message: "line 1:8: Column 'x' cannot be resolved", errorName: 'COLUMN_NOT_FOUND' }
    const { url } = await coordinator([{}, { error }])
    expect(await quipu(['query', '--server', url, 'SELECT x'])).toEqual({
      code: 1,
      stdout: '',
      stderr: `Query q1 failed: COLUMN_NOT_FOUND: ${error.message}\n`,
    })
  })

  it('marks the position of an error in the statement', async () => {
    const error = {
      message: "line 2:6: Table 'x' does not exist",
      errorName: 'TABLE_NOT_FOUND',
      errorLocation: { lineNumber: 2, columnNumber: 6 },
    }
    const { url } = await coordinator([{ error }])
    expect((await quipu(['query', '--server', url, 'SELECT 1\nFROM x'])).stderr).toBe(
      `Query q1 failed: TABLE_NOT_FOUND: ${error.message}\nLINE 2: FROM x\n             ^\n`,
    )
  })

  it('retries a GET after a broken connection, and never a POST', async () => {
    const cut = await coordinator([{}, 'cut', 'cut', { columns, data: [[1, 'one']] }])
    expect(await quipu(['query', '--server', cut.url, 'SELECT 1'])).toMatchObject({ code: 0, stderr: '' })
    expect(cut.seen.map(({ path }) => path).slice(1)).toEqual(Array(3).fill('/v1/statement/q1/1'))

    const post = await coordinator(['cut', {}])
    expect((await quipu(['query', '--server', post.url, 'SELECT 1'])).code).toBe(1)
    expect(post.seen).toHaveLength(1)
  })

  it('prints the refusal of a server, and the address that it could not reach', async () => {
    const { url } = await coordinator([503])
    expect(await quipu(['query', '--server', url, 'SELECT 1'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'quipu: The server answered 503: Not now\n',
    })
    const none = await quipu(['query', '--server', 'http://127.0.0.1:1', 'SELECT 1'])
    expect(none).toMatchObject({ code: 1, stdout: '' })
    expect(none.stderr).toMatch(/^quipu: Cannot reach http:\/\/127\.0\.0\.1:1: .*\n$/)
  })

  it('cancels the statement on Ctrl-C', async () => {
    const { url, seen } = await coordinator([{}, {}, {}, ...Array<object>(100_000).fill({})])
    const run = await quipu(['query', '--server', url, 'SELECT 1'], '', (pid) => {
      const wait = setInterval(() => {
        if (seen.length < 3) return
        clearInterval(wait)
        process.kill(pid, 'SIGINT')
      }, 10)
    })
    expect(run.code).toBe(130)
    expect(seen.at(-1)!.method).toBe('DELETE')
  })

  it('prints help and version, and exits with 64 on wrong usage', async () => {
    expect((await quipu(['query', '--help'])).stdout).toContain('--catalog')
    expect(await quipu(['query', '--none'])).toMatchObject({
      code: 64,
      stderr: "quipu: Unknown option '--none'; see quipu query --help\n",
    })
    expect(await quipu(['query'])).toMatchObject({
      code: 64,
      stderr: 'quipu: No statement: quipu query "SELECT 1"; see quipu query --help\n',
    })
    expect((await quipu(['--help'])).stdout).toContain('QUIPU_DATA_DIR')
    expect((await quipu(['--version'])).stdout).toMatch(/^quipu \d+\.\d+\.\d+\n$/)
    expect(await quipu(['strat'])).toMatchObject({
      code: 64,
      stderr: 'quipu: Unknown command strat: try quipu --help\n',
    })
    expect((await quipu([])).code).toBe(64)
  })
})
