import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { createActsAs, type ActsAs } from '../../protocol/access/acts-as.ts'
import { callerAt, createAuthenticate, watchersBy, type Authenticate } from '../../protocol/access/authenticate.ts'
import { ANYBODY, NOBODY, type Caller } from '../../protocol/access/caller.ts'
import type { QueryRows } from '../../events/projection.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { clientConnection } from '../../protocol/edge/client-connection.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import type { LogInDeps, LogInDoor } from '../../protocol/log-in/log-in-routes.ts'
import { relayedPrincipal } from '../../protocol/relay/relayed-request.ts'
import { isAuthorized } from '../../protocol/task/internal-request.ts'
import type { Authenticator, VerifiedName } from '../../security/authentication/authenticator.ts'
import { createFailedLogIns } from '../../security/authentication/failed-log-ins.ts'
import type { GroupsOf } from '../../security/authentication/groups-file.ts'
import type { UserMapping } from '../../security/authentication/user-mapping.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { allowAll, authorizeBy, type Authorize } from '../../security/authorization.ts'
import { internalBearer } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import { createLogInAttempts, createKnownNames } from './log-in-attempts.ts'
import { wireAuthenticators, type SourceNews } from './wire-authenticators.ts'
import { wireLogIns } from './wire-log-ins.ts'
import { followRules, type RulesInForce } from '../../security/rules/rules-file.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'

/** Who may come in to a coordinator, and as whom; once a process, so that what was verified stays so when it becomes the writer. */
export interface Access {
  /** Must clients be known? */
  readonly configured: boolean
  /** Who may do what, without a word to anybody. */
  readonly rights: Authorize
  /** The same of a statement that runs: where nobody is known, nobody becomes another. */
  readonly ofStatements: Authorize
  /** @param refusals where this role of the process tells of refusals and log-ins */
  door(refusals: Pick<RefusalLog, 'authenticationFailed' | 'accessDenied' | 'loggedIn'>): AccessDoor
  /** Where is told what becomes of files that changed; nothing is told of them before. */
  observe(telemetry: AccessTelemetry): void
  /** Where log-ins that are under way lie. */
  open(ask: QueryRows): void
  stop(): Promise<void>
}

export interface AccessDoor {
  /** @throws HttpProblem, also in the promise: see `Authenticate` */
  readonly callerAt: (request: IncomingMessage, path: string) => Caller | Promise<Caller>
  /** Of a request that another coordinator passed on, and vouches for. */
  readonly relayedCaller: (request: IncomingMessage) => Caller
  readonly actsAs: ActsAs
  /** Refusals are told of. */
  readonly authorize: Authorize
  /** Where authentication is configured. */
  readonly logIns: Omit<LogInDeps, 'onError'> | undefined
}

export interface AccessTelemetry {
  readonly logger: Logger
  readonly meters: () => Meters
}

export interface AccessParts {
  readonly config: Config
  /** Of the cluster. */
  readonly secret: string
}

/** @throws ExitError 64 with one line when a file that says who may do what is wrong, or not there */
export function wireAccess({ config, secret }: AccessParts): Access {
  const configured = config.authentication.length > 0
  const bearer = internalBearer(secret)
  const logIns = configured ? wireLogIns(config, secret) : undefined
  const observed: { telemetry?: AccessTelemetry } = {}
  const idle: string[] = []
  const rules = rulesOf(config, newsTo(observed), (message) => {
    if (observed.telemetry) observed.telemetry.logger.warn('file.without_effect', {}, message)
    else idle.push(message)
  })
  const { byMethod, mapping, groupsOf, isKnown } = wireAuthenticators(config, newsTo(observed))
  const authenticators: readonly Authenticator[] = config.authentication.flatMap((method) => byMethod[method] ?? [])
  const failures = createFailedLogIns(clock.monotonicMs)
  const names = createKnownNames(isKnown)
  const principalNamed = principalBy(mapping, groupsOf)
  const meters = (): Meters | undefined => observed.telemetry?.meters()
  const rights = configured ? authorizeBy(() => rules?.rules) : allowAll
  return {
    configured,
    rights,
    ofStatements: configured ? rights : (_identity, { action }) => action !== 'impersonate',
    observe(telemetry) {
      observed.telemetry = telemetry
      for (const message of idle.splice(0)) telemetry.logger.warn('file.without_effect', {}, message)
    },
    door(refusals) {
      const authorize = recordDenials(rights, refusals)
      const attempts = createLogInAttempts({ failures, names, refusals, meters })
      const authenticateBy = (ways: readonly Authenticator[]): Authenticate =>
        createAuthenticate({
          authenticators: ways,
          attempts,
          principalOf: principalNamed,
          bearer,
          confidential: (request) => clientConnection(request).confidential,
          baseUri,
        })
      const authenticate = authenticateBy([...(logIns?.sessions ?? []), ...authenticators])
      return {
        callerAt: configured ? callerAt(authenticate, watchersBy(config.metricsToken)) : () => ANYBODY,
        relayedCaller(request) {
          const principal = relayedPrincipal(request)
          if (principal) return { kind: 'principal', principal }
          if (!configured) return ANYBODY
          return isAuthorized(request, bearer) ? { kind: 'cluster' } : NOBODY
        },
        actsAs: createActsAs({ authorize, groupsOf }),
        authorize,
        logIns: logIns && {
          ...logIns.deps,
          door: {
            byPassword: byPasswordAt(authenticateBy(authenticators.filter(({ method }) => method === 'password'))),
            admit(verified, request) {
              const principal = principalNamed(verified, 'oauth2')
              if (principal) attempts.loggedIn(principal, request)
              else
                attempts.refused({ method: 'oauth2', user: verified.name, verified: true, reason: UNMAPPED }, request)
              if (!principal) throw new HttpProblem(403, 'Nobody by this name is a user here')
              return principal
            },
          },
        },
      }
    },
    open: (ask) => logIns?.open(ask),
    async stop() {
      rules?.stop()
      await logIns?.stop()
    },
  }
}

/** A form's fields are looked at as a program's header is: counted, slowed and told of alike. */
function byPasswordAt(authenticate: Authenticate): LogInDoor['byPassword'] {
  return async (user, password, request) => {
    if (user.includes(':')) throw new HttpProblem(401, 'Authentication failed')
    request.headers.authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    try {
      const caller = await authenticate(request)
      if (caller.kind === 'principal') return caller.principal
      throw new HttpProblem(401, 'Authentication failed')
    } finally {
      delete request.headers.authorization
    }
  }
}

const UNMAPPED = 'the user mapping has no user for this name'

/** The groups of the file come to those that a credential names. */
function principalBy(
  mapping: UserMapping,
  groupsOf: GroupsOf,
): (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined {
  return ({ name, user: given, groups }, method) => {
    const user = given ?? mapping(name)
    return user === undefined ? undefined : { name, user, groups: [...new Set([...groups, ...groupsOf(user)])], method }
  }
}

function newsTo(observed: { readonly telemetry?: AccessTelemetry }): SourceNews {
  return {
    taken(file, path) {
      observed.telemetry?.meters().set('filesBroken', { file }, 0)
      observed.telemetry?.logger.info('file.reloaded', { file, path }, 'What changed is in force')
    },
    broken(file, path, error) {
      observed.telemetry?.meters().set('filesBroken', { file }, 1)
      const fields = { file, path, reason: error.message }
      observed.telemetry?.logger.error(
        'file.broken',
        fields,
        'It cannot be taken: what was there before stays in force',
      )
    },
  }
}

function rulesOf(
  { accessRulesFile: path }: Config,
  news: SourceNews,
  warn: (message: string) => void,
): RulesInForce | undefined {
  if (path === undefined) return undefined
  const ofFile = {
    onReloaded: () => news.taken('rules', path),
    onBroken: (_path: string, error: Error) => news.broken('rules', path, error),
  }
  try {
    return followRules(path, ofFile, (sections) =>
      warn(`${path}: nothing acts on ${sections.join(', ')} yet: what is written there restricts nobody`),
    )
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `accessRulesFile: ${path}: ${(error as Error).message}`)
  }
}
