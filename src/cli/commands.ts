import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { keepFilesPrivate } from '../supervisor/data-folder.ts'

const USAGE = `usage: quipu <command> [options]

  start           everything on this machine: Postgres, one coordinator, its workers
  coordinator     one coordinator, for Postgres and workers that run elsewhere
  worker          one worker, for coordinators that run elsewhere
  rebuild         makes the read models anew from the event log; a server may run meanwhile
                  (--query ID: the rows of one query)
  audit verify    checks the event log: hashes, order, the end of each query; quipu audit --help
  forget          takes the data of one query out of the event log; quipu forget --help
  drain           lets a worker end after what it has to do; quipu drain --help
  archive         moves old records of the event log to its archive; quipu archive --help
  restore         makes a log again of what the archive holds; quipu restore --help
  continue        begins a log in Kafka that goes on from the one in Postgres; quipu continue --help
  reset-epoch     lets stopped workers forget the epochs they have heard of; quipu reset-epoch --help
  query "SQL"     runs a statement and prints its rows; quipu query --help
  kill ID         ends a query, with a message to whom it belongs to; quipu kill --help
  tail            prints events as they happen, one a line; quipu tail --help
  replay          runs recorded statements again, here and elsewhere, and compares; quipu replay --help
  hash-password   makes a line of a password file; quipu hash-password --help
  help, --help    this text with all settings
  --version       the version

Settings are flags, or variables, or keys of etc/config.json (--config FILE, QUIPU_CONFIG), in this order of force.
`

const AS_SETTINGS =
  'Settings are flags, or variables, or keys of etc/config.json (--config FILE, QUIPU_CONFIG), in this order of force.\n'

const PROGRAMS = {
  start: `usage: quipu start [settings]

Everything on this machine: Postgres unless the settings name one, one coordinator, its workers. It runs until it gets
SIGTERM or Ctrl-C; statements that run then are finished first.

${AS_SETTINGS}`,
  coordinator: `usage: quipu coordinator [--standby] [settings]

One coordinator, for Postgres and workers that run elsewhere.

  --standby  follows while another coordinator writes the event log, and takes over when that one is gone; waits where
             the event log or Postgres is not there yet

${AS_SETTINGS}`,
  worker: `usage: quipu worker [settings]

One worker, for coordinators that run elsewhere (--coordinators). After SIGTERM, or quipu drain, it takes no new tasks and ends after
those that it has.

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
    case 'drain': {
      const { drainCommand } = await import('./drain-command.ts')
      return drainCommand(rest)
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
    case 'tail': {
      const { tailCommand } = await import('./tail-command.ts')
      return tailCommand(rest)
    }
    case 'replay': {
      const { replayCommand } = await import('./replay-command.ts')
      return replayCommand(rest)
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
