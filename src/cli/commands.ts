import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { keepFilesPrivate } from '../supervisor/data-folder.ts'

const USAGE = `usage: quipu <command> [options]

  start           starts Postgres, one coordinator and its workers on this machine
  coordinator     starts one coordinator; Postgres and the workers run elsewhere
  worker          starts one worker; the coordinators run elsewhere
  rebuild         rebuilds the read models from the event log, also while a server runs
                  (--query ID: the rows of one query)
  audit verify    checks the event log: hashes, order, the end of each query; quipu audit --help
  forget          removes the data of one query from the event log; quipu forget --help
  erase           erases a person or a value everywhere, and proves it; quipu erase --help
  drain           stops a worker after its current work; quipu drain --help
  cluster         lists, drains and checks the clusters of delegated statements; quipu cluster --help
  archive         moves old records of the event log to its archive; quipu archive --help
  restore         restores an event log from its archive; quipu restore --help
  continue        begins a log in Kafka that continues the log in Postgres; quipu continue --help
  reset-epoch     deletes the epochs that stopped workers have stored; quipu reset-epoch --help
  query "SQL"     runs a statement and prints its rows; quipu query --help
  kill ID         ends a query, with a message to its user; quipu kill --help
  act             kills, holds, runs again or forgets many queries; quipu act --help
  tail            prints events as they happen, one on each line; quipu tail --help
  routing check   checks a file of routing rules and shows how it routes a statement; quipu routing --help
  replay          runs recorded statements again on two servers and compares the results; quipu replay --help
  shadow          runs the statements of a server on a second server too, as they come; quipu shadow --help
  hash-password   prints a line for a password file; quipu hash-password --help
  help, --help    prints this text with all settings
  --version       prints the version

Settings are flags, variables, or keys of etc/config.json (--config FILE, QUIPU_CONFIG). A flag overrides a variable, and a
variable overrides a key.
`

const AS_SETTINGS = `Settings are flags, variables, or keys of etc/config.json (--config FILE, QUIPU_CONFIG). A flag overrides a variable, and a
variable overrides a key.
`

const PROGRAMS = {
  start: `usage: quipu start [settings]

Starts one coordinator and its workers on this machine, and Postgres unless the settings name one. It runs until it gets
SIGTERM or Ctrl-C. It finishes running statements before it ends.

${AS_SETTINGS}`,
  coordinator: `usage: quipu coordinator [--standby] [settings]

Starts one coordinator. Postgres and the workers run elsewhere.

  --standby  follows the coordinator that writes the event log, and takes over when that coordinator is gone. It waits if
             the event log or Postgres cannot be reached yet

${AS_SETTINGS}`,
  worker: `usage: quipu worker [settings]

Starts one worker. The coordinators run elsewhere (--coordinators). After SIGTERM or quipu drain, the worker takes no new
tasks and ends after its current tasks.

${AS_SETTINGS}`,
} as const

/** Runs a command. Loads only that command's program, so that small commands start fast. */
async function run(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv
  switch (command) {
    case 'start':
    case 'coordinator':
    case 'worker': {
      if (rest.includes('--help')) return help(PROGRAMS[command])
      const { superviseCommand } = await import('./supervise-command.ts')
      return superviseCommand(command, rest)
    }
    case 'rebuild': {
      const { rebuildCommand } = await import('./rebuild-command.ts')
      return rebuildCommand(rest)
    }
    case 'audit': {
      const { auditCommand } = await import('./audit-command.ts')
      return auditCommand(rest)
    }
    case 'forget': {
      const { forgetCommand } = await import('./forget-command.ts')
      return forgetCommand(rest)
    }
    case 'erase': {
      const { eraseCommand } = await import('./erase-command.ts')
      return eraseCommand(rest)
    }
    case 'drain': {
      const { drainCommand } = await import('./drain-command.ts')
      return drainCommand(rest)
    }
    case 'cluster': {
      const { clusterCommand } = await import('./cluster-command.ts')
      return clusterCommand(rest)
    }
    case 'archive': {
      const { archiveCommand } = await import('./archive-command.ts')
      return archiveCommand(rest)
    }
    case 'restore': {
      const { restoreCommand } = await import('./restore-command.ts')
      return restoreCommand(rest)
    }
    case 'continue': {
      const { continueCommand } = await import('./continue-command.ts')
      return continueCommand(rest)
    }
    case 'reset-epoch': {
      const { resetEpochCommand } = await import('./reset-epoch-command.ts')
      return resetEpochCommand(rest)
    }
    case 'query': {
      const { queryCommand } = await import('./query-command.ts')
      return queryCommand(rest)
    }
    case 'kill': {
      const { killCommand } = await import('./kill-command.ts')
      return killCommand(rest)
    }
    case 'act': {
      const { actCommand } = await import('./act-command.ts')
      return actCommand(rest)
    }
    case 'tail': {
      const { tailCommand } = await import('./tail-command.ts')
      return tailCommand(rest)
    }
    case 'routing': {
      const { routingCommand } = await import('./routing-command.ts')
      return routingCommand(rest)
    }
    case 'replay': {
      const { replayCommand } = await import('./replay-command.ts')
      return replayCommand(rest)
    }
    case 'shadow': {
      const { shadowCommand } = await import('./shadow-command.ts')
      return shadowCommand(rest)
    }
    case 'hash-password': {
      const { hashPasswordCommand } = await import('./hash-password-command.ts')
      return hashPasswordCommand(rest)
    }
    case '--version':
    case 'version': {
      const { version } = await import('../shared/version.ts')
      process.stdout.write(`quipu ${version}\n`)
      return 0
    }
    case 'help':
    case '--help':
      return help()
    case undefined:
      process.stderr.write(USAGE)
      return exitCodes.configuration
    default:
      throw new ExitError(exitCodes.configuration, `Unknown command ${command}: try quipu --help`)
  }
}

async function help(usage = USAGE): Promise<number> {
  const { settingsHelp } = await import('../config/settings-documentation.ts')
  process.stdout.write(`${usage}\n${settingsHelp()}\n`)
  return 0
}

keepFilesPrivate()
try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  const exit = error instanceof ExitError ? error : undefined
  process.stderr.write(`quipu: ${exit?.message ?? (error instanceof Error ? error.stack : String(error))}\n`)
  process.exitCode = exit?.exitCode ?? exitCodes.internal
}
