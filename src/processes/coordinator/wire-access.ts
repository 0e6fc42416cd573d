import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import {
  readPropertyRules,
  readPropertyRulesInSlices,
  type PropertyRules,
} from '../../coordinator/dispatch/property-rules.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { groupLabel } from '../../coordinator/dispatch/groups/rules-lookup.ts'
import {
  readGroupRules,
  readGroupRulesInSlices,
  type GroupRules,
} from '../../coordinator/dispatch/groups/group-rules.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { FileDigests } from '../../coordinator/query/planned-data.ts'
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
import { readRulesInSlices } from '../../security/rules/read-rules.ts'
import { accessRulesOf, parseRulesFile, type AccessRules } from '../../security/rules/rules-file.ts'
import type { WatchedFiles } from '../../security/watched-files.ts'
import type { CertificateNews } from '../tls-identity.ts'
import { createAccessSources, type AccessSources, type AccessTelemetry } from './access-sources.ts'
import type { FailuresElsewhere } from './follower-sightings.ts'
import { createKeysInForce } from './keys-in-force.ts'
import { createLogInAttempts, createKnownNames } from './log-in-attempts.ts'
import { readApart } from './read-apart.ts'
import { wireAuthenticators } from './wire-authenticators.ts'
import { wireLogIns } from './wire-log-ins.ts'

/** Who may come in to a coordinator, and as whom; once a process, so that what was verified stays so when it becomes the writer. */
export interface Access {
  /** Must clients be known? */
  readonly configured: boolean
  /** Whom limits count what somebody does to. */
  readonly ownerOf: LimitOwnerOf
  /** Who may do what, without a word to anybody. */
  readonly rights: Authorize
  /** The same of a statement that runs: where nobody is known, nobody becomes another. */
  readonly ofStatements: Authorize
  /** What anybody may do with catalogs and tables, by the rules as they are now; undefined without such rules. */
  objectsOf(asker: Pick<Identity, 'user' | 'groups'>): RightsOf | undefined
  /** The resource groups of the file as it is now; undefined without such a file. */
  readonly groupRules: (() => GroupRules) | undefined
  /** What sets session properties, as its file is now; undefined without such a file. */
  readonly propertyRules: (() => PropertyRules) | undefined
  /** What figures call a group by. */
  groupLabel(group: string): string
  /** Digests of the files that say who may do what, as they are in force now. */
  filesInForce(): FileDigests
  /** All those files, also secret ones. */
  fileVersions(): readonly FileVersion[]
  /** Where the log is told of those files, and of keys, while this process writes it. */
  recordIn(log: { readonly files: FileRecord; readonly journal: Pick<SystemJournal, 'record'> } | undefined): void
  /** By what this process is known over TLS. */
  certificate(news: CertificateNews): void
  /** @param refusals where this role of the process tells of refusals and log-ins */
  door(
    refusals: Pick<RefusalLog, 'authenticationFailed' | 'accessDenied' | 'loggedIn'>,
    elsewhere?: FailuresElsewhere,
  ): AccessEntry
  /** What another coordinator has seen, which this one writes and counts. */
  takeReport(report: SightingReport, refusals: Pick<RefusalLog, 'sighted'>): Remembered
  /** Failures of which the writer remembers more than this process. */
  mergeFailures(remembered: FailureCounts): void
  /** Where is told what becomes of files that changed; nothing is told of them before. */
  observe(telemetry: AccessTelemetry): void
  /** Where log-ins that are under way lie. */
  open(ask: QueryRows): void
  /** Whoever waits for a log-in here is told to come again. */
  drain(): void
  stop(): Promise<void>
}

export interface AccessEntry {
  /** @throws HttpProblem, also in the promise: see `Authenticate` */
  readonly callerAt: (request: IncomingMessage, path: string) => Caller | Promise<Caller>
  /** Of a request that another coordinator passed on, and vouches for. */
  readonly relayedCaller: (request: IncomingMessage) => Caller
  readonly actsAs: ActsAs
  /** Whom limits count what somebody does to. */
  readonly ownerOf: LimitOwnerOf
  /** Refusals are told of. */
  readonly authorize: Authorize
  /** Where authentication is configured. */
  readonly logIns: Omit<LogInDeps, 'onError'> | undefined
}

export interface AccessParts {
  readonly config: Config
  /** Of the cluster. */
  readonly secret: string
  /** Of the process before this one, which stay in force while the files are of no use. @default nothing */
  readonly files?: KeptTexts
}

/** @throws ExitError 64 with one line when a file that says who may do what is wrong, or not there, and none was in force before */
export function wireAccess({ config, secret, files }: AccessParts): Access {
  const configured = config.authentication.length > 0
  const bearer = internalBearer(secret)
  const observed: { telemetry?: AccessTelemetry } = {}
  const fileKey = deriveKey(secret, 'file-digest')
  const sources = createAccessSources(fileKey, () => observed.telemetry, files)
  const rules = rulesOf(config, sources, fileKey)
  const groupsFile = config.resourceGroupsFile
  const groups =
    groupsFile === undefined
      ? undefined
      : sources.follow('resource_groups', groupsFile, readGroupRules, {
          setting: 'resourceGroupsFile',
          readAgain: (text) => readApart({ file: 'resource_groups', text, key: fileKey }, readGroupRulesInSlices),
          recorded: true,
          entries: ({ selectors }) => selectors.length,
        })
  const properties = propertyRulesOf(config, sources, fileKey, () => observed.telemetry)
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
  const principalNamed = principalBy(mapping, groupsOf)
  const meters = (): Meters | undefined => observed.telemetry?.meters()
  const rights = configured ? authorizeBy(() => rules?.value.queries) : allowAll
  return {
    configured,
    ownerOf: limitOwners(configured),
    rights,
    ofStatements: configured ? rights : (_identity, { action }) => action !== 'impersonate',
    objectsOf({ user, groups }) {
      const objects = rules?.value.objects
      return objects && ((name) => objects(name === user ? { user, groups } : { user: name, groups: groupsOf(name) }))
    },
    groupRules: groups && (() => groups.value),
    propertyRules: properties && (() => properties.value),
    groupLabel: (group) => (groups ? groupLabel(groupPath(group), groups.value.rootGroups) : group),
    filesInForce: sources.inForce,
    fileVersions: sources.versions,
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
    door(refusals, elsewhere) {
      const authorize = recordDenials(rights, refusals)
      const attempts = createLogInAttempts({
        failures,
        names,
        refusals,
        elsewhere,
        meters,
        now: clock.monotonicMs,
      })
      const authenticate = createAuthenticate({
        authenticators: [...(logIns?.sessions ?? []), ...authenticators],
        attempts,
        principalOf: principalNamed,
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
          door: {
            byPassword: byPasswordAt(authenticate, byMethod.password, passwordMarkOf),
            admit: (verified, request) => authenticate.verified(verified, 'oauth2', request),
          },
        },
      }
    },
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

/** Of the form of the page. */
function byPasswordAt(
  { credential }: Pick<Authentication, 'credential'>,
  passwords: Authenticator | undefined,
  markOf: PasswordVerifier['markOf'],
): LogInEntry['byPassword'] {
  return async (user, secret, request) => {
    // Of before: a password that is changed meanwhile opens no session.
    const passwordMark = markOf?.(user)
    // As a header says both no user has a colon.
    const caller = passwords && !user.includes(':') ? await credential(passwords, { user, secret }, request) : NOBODY
    if (caller.kind !== 'principal') throw new HttpProblem(401, 'Authentication failed')
    const { name, user: ownName } = caller.principal
    return { name, user: ownName, groups: [], method: 'password', passwordMark }
  }
}

/** The groups of the file come to those that a credential names. */
function principalBy(
  mapping: UserMapping,
  groupsOf: GroupsOf,
): (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined {
  return ({ name, user: given, groups }, method) => {
    // The subject of a certificate is what its authority wrote: the user that the mapping makes of it is looked at.
    const isName = method === 'certificate' ? isTellable(name) : isUserName(name)
    if (!isName || !groups.every(isTellable)) return undefined
    const user = given ?? mapping(name)
    if (user === undefined) return undefined
    const principal = { name, user, groups: [...new Set([...groups, ...groupsOf(user)])], method }
    return isShort(principal) ? principal : undefined
  }
}

function rulesOf(
  { accessRulesFile: path }: Config,
  sources: AccessSources,
  key: Uint8Array,
): WatchedFiles<AccessRules> | undefined {
  if (path === undefined) return undefined
  return sources.follow('rules', path, parseRulesFile, {
    setting: 'accessRulesFile',
    readAgain: (text) =>
      readApart({ file: 'rules', text, key }, async (given, nextSlice) =>
        accessRulesOf(await readRulesInSlices(given, nextSlice)),
      ),
    recorded: true,
    entries: ({ count }) => count,
  })
}

function propertyRulesOf(
  { sessionPropertyRulesFile: path }: Config,
  sources: AccessSources,
  key: Uint8Array,
  telemetry: () => AccessTelemetry | undefined,
): WatchedFiles<PropertyRules> | undefined {
  if (path === undefined) return undefined
  const logged = (rules: PropertyRules): PropertyRules => {
    logIdle(rules, telemetry())
    return rules
  }
  return sources.follow('session_properties', path, (text) => logged(readPropertyRules(text)), {
    readAgain: (text) =>
      readApart({ file: 'session_properties', text, key }, async (given, nextSlice) =>
        logged(await readPropertyRulesInSlices(given, nextSlice)),
      ),
    setting: 'sessionPropertyRulesFile',
    recorded: true,
    entries: ({ rules }) => rules.length,
  })
}

/** Whoever keeps the rules is told of what they cannot do, rather than everybody who posts a statement. */
function logIdle({ withoutEffect }: PropertyRules, telemetry: AccessTelemetry | undefined): void {
  if (withoutEffect.length === 0) return
  const fields = { properties: withoutEffect.join(', ') }
  telemetry?.logger.warn('file.without_effect', fields, 'Rules set session properties that have no effect here')
}
