import type { Config } from '../../config/load-config.ts'
import { readClusterFiles, type ClusterFiles } from '../../coordinator/clusters/cluster-files.ts'
import {
  readRoutingRules,
  readRoutingRulesInSlices,
  type RoutingRules,
} from '../../coordinator/clusters/routing/routing-rules.ts'
import {
  readGroupRules,
  readGroupRulesInSlices,
  type GroupRules,
} from '../../coordinator/dispatch/groups/group-rules.ts'
import {
  readPropertyRules,
  readPropertyRulesInSlices,
  type PropertyRules,
} from '../../coordinator/dispatch/property-rules.ts'
import { pricesSchema, type Prices } from '../../readmodels/history/prices.ts'
import { readRulesInSlices, readStrictJson } from '../../security/rules/read-rules.ts'
import { accessRulesOf, parseRulesFile, type AccessRules } from '../../security/rules/rules-file.ts'
import type { WatchedFiles } from '../../security/watched-files.ts'
import type { AccessSources, AccessTelemetry } from './access-sources.ts'
import { readApart } from './read-apart.ts'

/** The current content of the files of rules. A file that is not configured is undefined. */
export interface RuleFiles {
  readonly access: WatchedFiles<AccessRules> | undefined
  readonly groups: WatchedFiles<GroupRules> | undefined
  readonly properties: WatchedFiles<PropertyRules> | undefined
  readonly routing: WatchedFiles<RoutingRules> | undefined
  readonly clusters: WatchedFiles<ClusterFiles> | undefined
  readonly prices: WatchedFiles<Prices> | undefined
}

/**
 * Reads the files of rules now and whenever they change.
 * @param key for digests of their texts
 * @throws ExitError 64 with one line when a file is wrong or missing, and none was in force before
 */
export function followRuleFiles(
  config: Config,
  sources: AccessSources,
  key: Uint8Array,
  telemetry: () => AccessTelemetry | undefined,
): RuleFiles {
  return {
    access: accessRulesIn(config, sources, key),
    groups: groupRulesIn(config, sources, key),
    properties: propertyRulesIn(config, sources, key, telemetry),
    routing: routingRulesIn(config, sources, key),
    clusters: clustersIn(config, sources),
    prices: pricesIn(config, sources),
  }
}

function accessRulesIn(
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

function groupRulesIn(
  { resourceGroupsFile: path }: Config,
  sources: AccessSources,
  key: Uint8Array,
): WatchedFiles<GroupRules> | undefined {
  if (path === undefined) return undefined
  return sources.follow('resource_groups', path, readGroupRules, {
    setting: 'resourceGroupsFile',
    readAgain: (text) => readApart({ file: 'resource_groups', text, key }, readGroupRulesInSlices),
    recorded: true,
    entries: ({ selectors }) => selectors.length,
  })
}

function clustersIn({ clustersDir: folder }: Config, sources: AccessSources): WatchedFiles<ClusterFiles> | undefined {
  if (folder === undefined) return undefined
  let tlsFiles: readonly string[] = []
  const read = (text: string): ClusterFiles => {
    const files = readClusterFiles(text, folder)
    tlsFiles = files.tlsFiles
    return files
  }
  return sources.follow('clusters', folder, read, {
    setting: 'clustersDir',
    recorded: true,
    folderWith: () => tlsFiles,
    entries: ({ clusters }) => clusters.length,
  })
}

function propertyRulesIn(
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

function routingRulesIn(
  { routingRulesFile: path }: Config,
  sources: AccessSources,
  key: Uint8Array,
): WatchedFiles<RoutingRules> | undefined {
  if (path === undefined) return undefined
  return sources.follow('routing-rules', path, readRoutingRules, {
    readAgain: (text) => readApart({ file: 'routing-rules', text, key }, readRoutingRulesInSlices),
    setting: 'routingRulesFile',
    recorded: true,
    entries: ({ rules }) => rules.length,
  })
}

function pricesIn({ pricesFile: path }: Config, sources: AccessSources): WatchedFiles<Prices> | undefined {
  if (path === undefined) return undefined
  return sources.follow('prices', path, (text) => readStrictJson(text, pricesSchema), {
    setting: 'pricesFile',
    recorded: true,
    entries: ({ periods }) => periods.length,
  })
}

/**
 * Warns the administrator of the rules about properties without effect, instead of every client that posts a statement.
 */
export function logIdle({ withoutEffect }: PropertyRules, telemetry: AccessTelemetry | undefined): void {
  if (withoutEffect.length === 0) return
  const fields = { properties: withoutEffect.join(', ') }
  telemetry?.logger.warn('file.without_effect', fields, 'The rules set session properties that have no effect in Quipu')
}
