import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import type { RoutingRules } from '../../coordinator/clusters/routing/routing-rules.ts'
import type { PropertyRules } from '../../coordinator/dispatch/property-rules.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { groupLabel } from '../../coordinator/dispatch/groups/group-level.ts'
import type { GroupRules } from '../../coordinator/dispatch/groups/group-rules.ts'
import type { ClusterFiles } from '../../coordinator/clusters/cluster-files.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { FileDigests } from '../../coordinator/query/stream/planned-data.ts'
import type { FileRecord, FileVersion } from '../../coordinator/system/file-record.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import { createActsAs, type ActsAs } from '../../protocol/access/acts-as.ts'
import { callerAt, createAuthenticate, watchersBy, type Authentication } from '../../protocol/access/authenticate.ts'
import { ANYBODY, NOBODY, type Caller } from '../../protocol/access/caller.ts'
import type { QueryRows } from '../../events/projection.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { clientConnection } from '../../protocol/edge/client-connection.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import type { LogInDeps, LogInEntry } from '../../protocol/log-in/log-in-routes.ts'
import { isOwnOfCoordinator, relayedPrincipal } from '../../protocol/relay/relayed-request.ts'
import type { Remembered, SightingReport } from '../../protocol/relay/sighting-report.ts'
import { isAuthorized } from '../../protocol/task/internal-request.ts'
import type { RightsOf } from '../../sql/access-control.ts'
import type { Authenticator, VerifiedName } from '../../security/authentication/authenticator.ts'
import { createFailedLogIns, type FailureCounts } from '../../security/authentication/failed-log-ins.ts'
import type { GroupsOf } from '../../security/authentication/groups-file.ts'
import type { PasswordVerifier } from '../../security/authentication/password-authenticator.ts'
import type { UserMapping } from '../../security/authentication/user-mapping.ts'
import { comparedName, isUserName } from '../../security/authentication/user-name.ts'
import { isShort, isTellable, type VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { allowAll, authorizeBy, type Authorize, type Identity } from '../../security/authorization.ts'
import { deriveKey, internalBearer } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { KeptTexts } from '../child-life.ts'
import { limitOwners, type LimitOwnerOf } from '../../shared/limit-owner.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { Prices } from '../../readmodels/history/prices.ts'
import type { WatchedFiles } from '../../security/watched-files.ts'
import type { CertificateNews } from '../tls-identity.ts'
import { createAccessSources, type AccessTelemetry } from '../access/access-sources.ts'
import type { FailuresElsewhere } from '../health/follower-sightings.ts'
import { createKeysInForce } from '../access/keys-in-force.ts'
import { createLogInAttempts, createKnownNames } from '../access/log-in-attempts.ts'
import { notAsBefore } from '../access/recorded-session.ts'
import { followRuleFiles, logIdle } from '../access/rule-files.ts'
import type { QuerySession } from '../../coordinator/query/stream/events.ts'
import { wireAuthenticators } from './wire-authenticators.ts'
import { wireLogIns, type WiredLogIns } from './wire-log-ins.ts'

/**
 * Authenticates clients of a coordinator and decides what they may do. One per process, so verified credentials stay
 * verified when the process becomes the writer.
 */
export interface Access {
  /** Whether clients must authenticate. */
  readonly configured: boolean
  /** The owner whose limits a client's actions count against. */
  readonly ownerOf: LimitOwnerOf
  /** Decides what a user may do, without reporting refusals. */
  readonly rights: Authorize
  /** The same for a running statement: without authentication, no user may act as another. */
  readonly ofStatements: Authorize
  /** Why a statement with a recorded session may not run again without a new log-in of its user; undefined: it may. */
  readonly notAsBefore: (session: QuerySession) => string | undefined
  /** The rights of a user on catalogs and tables, by the current rules; undefined without such rules. */
  objectsOf(asker: Pick<Identity, 'user' | 'groups'>): RightsOf | undefined
  /** The resource groups of the current file; undefined without such a file. */
  readonly groupRules: (() => GroupRules) | undefined
  /** The rules that set session properties, by the current file; undefined without such a file. */
  readonly propertyRules: (() => PropertyRules) | undefined
  /** The rules that choose where a statement runs, by the current file; undefined without such a file. */
  readonly routingRules: (() => RoutingRules) | undefined
  readonly prices: (() => Prices) | undefined
  /** The clusters of the current files; undefined without `clustersDir`. */
  readonly clusters: (() => ClusterFiles) | undefined
  /** The label of a group in metrics. */
  groupLabel(group: string): string
  /** Digests of the files with access rules that are in force now. */
  filesInForce(): FileDigests
  /** All those files, including secret ones. */
  fileVersions(): readonly FileVersion[]
  /**
   * From now on records those files and keys in this log; undefined ends that. Used while this process writes the log.
   */
  recordIn(log: { readonly files: FileRecord; readonly journal: Pick<SystemJournal, 'record'> } | undefined): void
  /** Reports news of this process's TLS certificate. */
  certificate(news: CertificateNews): void
  /** @param refusals where this role of the process reports refusals and log-ins */
  entry(
    refusals: Pick<RefusalLog, 'authenticationFailed' | 'accessDenied' | 'loggedIn'>,
    elsewhere?: FailuresElsewhere,
  ): AccessEntry
  /** Takes a report of another coordinator. This one writes and counts it. */
  takeReport(report: SightingReport, refusals: Pick<RefusalLog, 'sighted'>): Remembered
  /** Merges failures if the writer remembers more of them than this process. */
  mergeFailures(remembered: FailureCounts): void
  /** From now on reports changes of files to this telemetry. Nothing is reported before. */
  observe(telemetry: AccessTelemetry): void
  /** Gives access to the log-ins in progress, which are stored in the database. */
  open(ask: QueryRows): void
  /** Answers clients that wait for a log-in here: they must come again. */
  drain(): void
  stop(): Promise<void>
}

export interface AccessEntry {
  /** @throws HttpProblem, also in the promise: see `Authenticate` */
  readonly callerAt: (request: IncomingMessage, path: string) => Caller | Promise<Caller>
  /** The caller of a request that another coordinator passed on and vouches for. */
  readonly relayedCaller: (request: IncomingMessage) => Caller
  readonly actsAs: ActsAs
  /** The owner whose limits a client's actions count against. */
  readonly ownerOf: LimitOwnerOf
  /** Decides what a user may do, and reports refusals. */
  readonly authorize: Authorize
  /** Present where authentication is configured. */
  readonly logIns: Omit<LogInDeps, 'onError'> | undefined
}

export interface AccessDeps {
  readonly config: Config
  /** The cluster's secret. */
  readonly secret: string
  /** Texts of the previous process. They stay in force while the files cannot be used. @default nothing */
  readonly files?: KeptTexts
}

/**
 * @throws ExitError 64 with one line when a file with access rules is wrong or missing, and none was in force before
 */
export function wireAccess({ config, secret, files }: AccessDeps): Access {
  const configured = config.authentication.length > 0
  const bearer = internalBearer(secret)
  const observed: { telemetry?: AccessTelemetry } = {}
  const fileKey = deriveKey(secret, 'file-digest')
  const sources = createAccessSources(fileKey, () => observed.telemetry, files)
  const rules = followRuleFiles(config, sources, fileKey, () => observed.telemetry)
  const { groups, properties } = rules
  const keys = createKeysInForce()
  const { byMethod, mapping, groupsOf, isKnown, passwordMarkOf } = wireAuthenticators(config, secret, sources, keys)
  const logIns = configured
    ? wireLogIns(config, secret, ({ name, user, method, passwordMark }) => {
        const known = method !== 'password' || !passwordMarkOf || passwordMarkOf(name) === passwordMark
        return known && mapping(name) === user
      })
    : undefined
  const authenticators: readonly Authenticator[] = config.authentication.flatMap((method) => byMethod[method] ?? [])
  const failures = createFailedLogIns(
    clock.monotonicMs,
    deriveKey(secret, 'failed-log-ins'),
    config.ldapUrl === undefined ? undefined : comparedName,
  )
  const names = createKnownNames(isKnown)
  const credentialsHaveGroups = config.authentication.some((method) => method === 'jwt' || method === 'oauth2')
  const rights = configured ? authorizeBy(() => rules.access?.value.queries) : allowAll
  const entryDeps: EntryDeps = {
    config,
    authenticators: [...(logIns?.sessions ?? []), ...authenticators],
    passwords: byMethod.password,
    passwordMarkOf,
    logIns,
    failures,
    names,
    principalNamed: principalBy(mapping, groupsOf),
    groupsOf,
    meters: () => observed.telemetry?.meters(),
    bearer,
    rights,
  }
  return {
    configured,
    ownerOf: limitOwners(configured),
    rights,
    ofStatements: configured ? rights : (_identity, { action }) => action !== 'impersonate',
    notAsBefore: (session) =>
      configured ? notAsBefore({ groupsOf, credentialsHaveGroups, rights }, session) : undefined,
    objectsOf({ user, groups }) {
      const objects = rules.access?.value.objects
      return objects && ((name) => objects(name === user ? { user, groups } : { user: name, groups: groupsOf(name) }))
    },
    groupRules: valueOf(rules.groups),
    propertyRules: valueOf(rules.properties),
    routingRules: valueOf(rules.routing),
    prices: valueOf(rules.prices),
    clusters: valueOf(rules.clusters),
    groupLabel: (group) => (groups ? groupLabel(groupPath(group), groups.value.rootGroups) : group),
    filesInForce: () => sources.inForce(),
    fileVersions: () => sources.versions(),
    recordIn(log) {
      sources.recordIn(log?.files)
      keys.recordIn(log?.journal)
    },
    certificate: (news) => keys.certificate(config.tlsCert ?? '', news),
    observe(telemetry) {
      observed.telemetry = telemetry
      sources.logBroken()
      if (properties) logIdle(properties.value, telemetry)
    },
    entry: (refusals, elsewhere) => entryFor(entryDeps, refusals, elsewhere),
    takeReport(report, refusals) {
      for (const { sighting, count } of report.sightings) {
        if (sighting.type === 'LoggedIn') names.add(sighting.data.principal)
        refusals.sighted(sighting, count)
      }
      return { remembered: failures.merge(report.failures, report.forgiven) }
    },
    mergeFailures: failures.mergeFailures,
    open: (ask) => logIns?.open(ask),
    drain: () => logIns?.drain(),
    async stop() {
      sources.stop()
      await logIns?.stop()
    },
  }
}

/** The collaborators of an entry for clients. */
interface EntryDeps {
  readonly config: Config
  /** In the order in which they are tried: log-ins first. */
  readonly authenticators: readonly Authenticator[]
  /** Checks passwords; undefined without the method. */
  readonly passwords: Authenticator | undefined
  readonly passwordMarkOf: PasswordVerifier['markOf'] | undefined
  readonly logIns: WiredLogIns | undefined
  readonly failures: ReturnType<typeof createFailedLogIns>
  readonly names: ReturnType<typeof createKnownNames>
  readonly principalNamed: (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined
  readonly groupsOf: GroupsOf
  readonly meters: () => Meters | undefined
  readonly bearer: ReturnType<typeof internalBearer>
  readonly rights: Authorize
}

function entryFor(
  deps: EntryDeps,
  refusals: Parameters<Access['entry']>[0],
  elsewhere: FailuresElsewhere | undefined,
): AccessEntry {
  const { config, failures, names, meters, bearer, logIns, groupsOf, passwords, passwordMarkOf } = deps
  const configured = config.authentication.length > 0
  const authorize = recordDenials(deps.rights, refusals)
  const attempts = createLogInAttempts({
    failures,
    names,
    refusals,
    elsewhere,
    meters,
    now: clock.monotonicMs,
  })
  const authenticate = createAuthenticate({
    authenticators: deps.authenticators,
    attempts,
    principalOf: deps.principalNamed,
    bearer,
    confidential: (request) => clientConnection(request).confidential,
    baseUri,
  })
  return {
    callerAt: configured ? callerAt(authenticate.request, watchersBy(config.metricsToken)) : () => ANYBODY,
    relayedCaller(request) {
      const principal = relayedPrincipal(request)
      if (principal) return { kind: 'principal', principal }
      if (isOwnOfCoordinator(request)) return { kind: 'cluster' }
      if (!configured) return ANYBODY
      return isAuthorized(request, bearer) ? { kind: 'cluster' } : NOBODY
    },
    actsAs: createActsAs({
      authorize,
      groupsOf,
      meansOneself: (claimed, { name, method }) =>
        method === 'password' && config.ldapUrl !== undefined && comparedName(claimed) === comparedName(name),
    }),
    authorize,
    ownerOf: limitOwners(configured),
    logIns: logIns && {
      ...logIns.deps,
      entry: {
        byPassword: byPasswordAt(authenticate, passwords, passwordMarkOf),
        admit: (verified, request) => authenticate.verified(verified, 'oauth2', request),
      },
    },
  }
}

function valueOf<T>(file: WatchedFiles<T> | undefined): (() => T) | undefined {
  return file && (() => file.value)
}

/** Checks the user and password of the log-in page's form. */
function byPasswordAt(
  { credential }: Pick<Authentication, 'credential'>,
  passwords: Authenticator | undefined,
  markOf: PasswordVerifier['markOf'],
): LogInEntry['byPassword'] {
  return async (user, secret, request) => {
    // Taken before the check: if the password changes meanwhile, no session is opened.
    const passwordMark = markOf?.(user)
    // A Basic header has both in one text, separated by a colon. So no user name has a colon.
    const caller = passwords && !user.includes(':') ? await credential(passwords, { user, secret }, request) : NOBODY
    if (caller.kind !== 'principal') throw new HttpProblem(401, 'Authentication failed')
    const { name, user: ownName } = caller.principal
    return { name, user: ownName, groups: [], method: 'password', passwordMark }
  }
}

/** Makes principals of verified names. Adds the groups of the file to those that the credential names. */
function principalBy(
  mapping: UserMapping,
  groupsOf: GroupsOf,
): (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined {
  return ({ name, user: given, groups }, method) => {
    // The subject of a certificate is the authority's text. The check applies to the user that the mapping makes of it.
    const isName = method === 'certificate' ? isTellable(name) : isUserName(name)
    if (!isName || !groups.every(isTellable)) return undefined
    const user = given ?? mapping(name)
    if (user === undefined) return undefined
    const principal = { name, user, groups: [...new Set([...groups, ...groupsOf(user)])], method }
    return isShort(principal) ? principal : undefined
  }
}
