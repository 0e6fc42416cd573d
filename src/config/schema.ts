import { z } from 'zod'
import {
  bytes,
  duration,
  flag,
  httpAddress,
  integerSetting,
  list,
  listOf,
  listWith,
  namedTexts,
  oneOf,
  optionalBytes,
  optionalDuration,
  optionalInteger,
  optionalOneOf,
  optionalText,
  rangeList,
  textSetting,
} from './setting.ts'

const kB = 1024
const MB = 1024 * kB
const GB = 1024 * MB
const second = 1000
const minute = 60 * second

/** OpenTelemetry's own variables, so that a collector is configured as in any other program. */
const telemetry = z.strictObject({
  otlpEndpoint: httpAddress('OTLP over HTTP base address of a collector; nothing is exported without one', {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
  }),
  otlpTracesEndpoint: httpAddress('Full address for traces, in place of the base address', {
    env: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  }),
  otlpHeaders: namedTexts('Headers for the collector: `name=value,…`', {
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    secret: true,
  }),
  serviceName: optionalText('`service.name` of the resource; made from the process when absent', {
    env: 'OTEL_SERVICE_NAME',
  }),
  resourceAttributes: namedTexts('Further resource attributes: `name=value,…`', { env: 'OTEL_RESOURCE_ATTRIBUTES' }),
  tracesSampler: optionalText('Sampler of the SDK; parent based with a ratio by default', {
    env: 'OTEL_TRACES_SAMPLER',
  }),
  tracesSamplerArg: optionalText("The sampler's argument", { env: 'OTEL_TRACES_SAMPLER_ARG' }),
  tracesPerSecond: optionalInteger(
    'New traces a second at most, where the client does not ask for one; 10 a core, and no more than 50, by default',
    { min: 1, max: 100_000 },
  ),
  sdkDisabled: flag('Switches tracing off', { env: 'OTEL_SDK_DISABLED' }),
})

/** All waits in the system that an operator may want to change. */
const timeouts = z.strictObject({
  requestHeadMs: duration('How long a client may take to send the headers of a request', 10 * second),
  requestMs: duration('How long a client may take to send a request whole', minute),
  longPollMs: duration('Longest wait of a GET of nextUri for something new', second),
  sessionMs: duration('How long a log-in at the identity provider or at the page holds', 60 * minute),
  postLogWaitMs: duration('How long a POST waits for the event log before 503', 5 * second),
  deleteValidityWaitMs: duration('How long a DELETE waits for its event to be valid before it is answered', second),
  postPlanWaitMs: duration('How long after QueryCreated is valid a POST waits for the plan', 50),
  firstAppendHoldMs: duration('QueryCreated waits so long for company: a statement that ends by then is one append', 8),
  firstFollowMs: duration('A query whose first nextUri nobody asked for is abandoned after', 2 * minute),
  clientAbsentMs: duration('A query that no client asked about is abandoned after', 5 * minute),
  answersKeptMs: duration('Last answers and small pages are kept so long after the end of a query', 5 * minute),
  endedInMemoryMs: duration(
    'An ended query is answered from memory so long after its last request, then from the log',
    10 * second,
  ),
  ownWritesWaitMs: duration('How long a read waits for its own writes before it is marked stale', 2 * second),
  anchorMs: duration('Between two anchors of an event log in which something changed', minute),
  archiveAfterMs: optionalDuration(
    'Age at which what was written to the event log leaves it for its archive; without one nothing leaves for its age',
  ),
  archiveQueriesAfterMs: optionalDuration(
    'Age after its end, 25 hours at least, at which a query leaves the read models for files of the archive, which answer as they do; without one nothing leaves for its age',
  ),
  historyReadMs: duration(
    'Longest read of the history of queries for a client; Postgres ends what takes longer',
    10 * second,
  ),
  slowQueryMs: duration('A query that takes longer gets a line in the log with its plan and operators', 5 * second),
  queryRunMs: duration(
    'Longest run of a query, its waiting for a place included; a session can ask for less with `query_max_run_time`, and so on',
    100 * 24 * 60 * minute,
  ),
  queryExecutionMs: duration('Longest run of a query from its planning on', 100 * 24 * 60 * minute),
  queryPlanningMs: duration('Longest planning of a query', 10 * minute),
  queryCpuMs: optionalDuration('CPU time of a query, on all workers'),
  writerSilentMs: duration('Silence of the writing coordinator before another claims', 2 * second),
  writerSilentJitterMs: duration('Random addition to that silence, at most', 300),
  workerWaitMs: duration('How long a query waits for a worker to be there, after a restart too', 10 * second),
  workerRequestMs: duration('How long a worker may take to answer a request', 5 * second),
  pageLostMs: duration('A page whose worker was not reached for so long is lost', 15 * second),
  coordinatorBeatMs: duration("Between two beats of the coordinator's and the workers' event loops", second),
  coordinatorDeadMs: duration('Silence of a coordinator or worker after which its supervisor kills it', 10 * second),
  restartBackoffMinMs: duration('First pause before a process is started again', 100),
  restartBackoffMaxMs: duration('Longest pause before a process is started again', 10 * second),
  drainMs: duration('How long SIGTERM waits for open work before the process ends all the same', 10 * second),
  handOverMs: duration('How long a coordinator that stops waits until its successor may know of it', second),
  resignMs: duration('How long one that lost the event log lets open polls be answered', 1500),
  verifiedPasswordMs: duration('A password that was verified is not verified again for', 5 * minute),
  jwtClockSkewMs: duration('By how much the clock of who gives out tokens may differ', 30 * second),
  workerBeatMs: duration('Between two announcements of a worker; one missed makes it suspect', second),
  workerFailedMs: duration('Silence after which a worker counts as failed', 5 * second),
  workerForgetsMs: duration('A worker that hears no coordinator drops its tasks after', 10 * minute),
  engineBeatMs: duration('Between two beats of an engine', 250),
  engineDeadMs: duration('Silence after which an engine is killed', 2 * second),
  prepareMs: duration(
    'How much CPU an engine may take to prepare a statement, in ten times as long at most, before it is killed',
    2500,
  ),
  interruptMs: duration('From interrupting a statement to killing its engine', 150),
  spareEngineMs: duration('From ready to the start of the spare engine', 5 * second),
})

/** All limits. Exceeding one is an error with a clear message. */
const limits = z.strictObject({
  statementBytes: bytes('Longest statement', MB),
  headerBytes: bytes('Request headers in all', 64 * kB),
  headers: integerSetting('Headers of a request', 500, { min: 20, max: 10_000 }),
  connections: integerSetting('Connections to a coordinator or worker; what is beyond is closed', 4_096, {
    min: 16,
    max: 1_000_000,
  }),
  connectionsPerAddress: integerSetting(
    'Connections of one user, and those of one address, which is no proxy of `trustedProxies`, on which nobody is known yet; what is beyond is closed',
    1_024,
    {
      min: 8,
      max: 1_000_000,
    },
  ),
  taskBodyBytes: bytes('Largest body of a task update', 16 * MB),
  pageBytes: bytes('Size that result pages are cut at', MB),
  pageMaxBytes: bytes('Largest page: one wide row', 64 * MB),
  feeds: integerSetting('Readers of the live feed at once', 100, { min: 1, max: 10_000 }),
  feedsPerAddress: integerSetting('Of one user; of one address where users are not known', 32, { min: 1, max: 10_000 }),
  replays: integerSetting('Readers of the feed at once that are far behind the end of the log', 8, {
    min: 1,
    max: 1_000,
  }),
  openQueries: integerSetting('Open queries', 10_000, { min: 1, max: 1_000_000 }),
  openStatementBytes: bytes(
    'Memory that open statements take together: texts, sessions, plans; more are 429',
    256 * MB,
  ),
  userStatementBytes: bytes('Memory that the open statements of one user take', 64 * MB),
  addressStatementBytes: bytes(
    'Memory that the open statements of clients of one address take, where users are not known',
    64 * MB,
  ),
  runningQueries: integerSetting('Queries that run at once, where no file has resource groups', 100, {
    min: 1,
    max: 100_000,
  }),
  queuedQueries: integerSetting('Queued queries, where no file has resource groups', 5_000, { min: 0, max: 1_000_000 }),
  batchAttempts: integerSetting('Times that a batch of splits runs before its query fails', 4, { min: 1, max: 1_000 }),
  queryMemoryBytes: optionalBytes('Memory of a query on all workers; `query_max_memory` asks for less'),
  queryNodeMemoryBytes: optionalBytes('Memory of a query on one worker; `query_max_memory_per_node` asks for less'),
  queryScanBytes: optionalBytes('What a query may read; `query_max_scan_physical_bytes` asks for less'),
  inlineResultBytes: bytes('Result of a statement without tables, in memory while it is made', 16 * MB),
  pageMemoryBytes: bytes('Result pages at hand in a coordinator, of all queries', 64 * MB),
  endedQueries: integerSetting(
    'Ended queries in memory while the read models are away; of others only their places in the log are kept',
    2_000,
    { min: 0, max: 1_000_000 },
  ),
  endedQueryBytes: bytes('Memory that ended queries take, whoever may ask for them', 64 * MB),
  logRecords: optionalInteger(
    'Records of the event log that stay there, about; what is before leaves it for its archive. Without one it grows',
    { min: 1, max: Number.MAX_SAFE_INTEGER },
  ),
  hotQueries: optionalInteger(
    'Ended queries that stay in the read models, about; those that ended before them leave for files of the archive. Without one they grow',
    { min: 1, max: 1_000_000_000 },
  ),
  anchorEvents: integerSetting('Events after which an anchor is made at once', 1000, { min: 1, max: 1_000_000 }),
  pageStoreQueryBytes: bytes('Pages that one query keeps on disk', GB),
  pageStoreBytes: bytes('Pages that a worker keeps on disk', 10 * GB),
  diskFloorBytes: bytes('Free disk under the data folder below which no statement is accepted', GB),
  engineMemoryPercent: integerSetting("Part of the machine's memory that its workers' engines share", 60, {
    min: 1,
    max: 95,
  }),
})

const day = 24 * 60 * minute

/** What is published from the log to other systems. */
const publishing = z.strictObject({
  openLineageUrl: httpAddress(
    'Address of an OpenLineage server: runs of statements are posted to its `/api/v1/lineage`',
  ),
  openLineageFile: optionalText('File that they are appended to instead, a line each; put aside every 64 MB'),
  openLineageApiKeyFile: optionalText('File that holds the key for that server, sent as `Authorization: Bearer`'),
  openLineageCaFile: optionalText("Certificates (PEM) that vouch for that server, in place of the machine's"),
  openLineageNamespace: optionalText('Namespace of jobs and datasets there', { shownDefault: 'quipu://<environment>' }),
  openLineageStatements: flag('Texts of statements are told there, and messages of errors'),
  publicKafkaBrokers: list('Kafka brokers of the topic that anybody may be let read; without them there is none'),
  publicKafkaTopic: textSetting('That topic', 'quipu.public.v1'),
  publicKafkaRetentionMs: duration('How long it keeps messages, when it is made here', 7 * day),
  publicKafkaTexts: flag('Texts of statements and messages of errors are told there, too'),
  publicKafkaTls: flag('Those brokers are reached over TLS; so they are where one of the files below is named'),
  publicKafkaCaFile: optionalText("Certificates (PEM) that vouch for those brokers, in place of the machine's"),
  publicKafkaCertFile: optionalText('Certificate (PEM) by which this process is known to them'),
  publicKafkaKeyFile: optionalText('Private key (PEM) of that certificate'),
  publicKafkaSaslMechanism: optionalOneOf('How this process is known to them by a user name and a password', [
    'plain',
    'scram-sha-256',
    'scram-sha-512',
  ]),
  publicKafkaUser: optionalText('User name for them'),
  publicKafkaPassword: optionalText('Password for them', { secret: true }),
  publicKafkaPasswordFile: optionalText('File that holds the password for them'),
})

/** All settings of all programs. Flags, variables and the file are read into this shape. Unknown keys are errors. */
export const configSchema = z.strictObject({
  port: integerSetting('Port that clients connect to; 0 takes a free one', 8080, { min: 0, max: 65_535 }),
  host: textSetting('Address to listen on; one that is not loopback needs `--insecure`', '127.0.0.1'),
  dataDir: textSetting('Folder of everything that is kept', '.quipu'),
  tablesDir: optionalText(
    'Folder of the tables of `memory` catalogs, the same for coordinator and workers; `tables` in the data folder when absent',
  ),
  workers: integerSetting('Workers that `quipu start` runs', 1, { min: 0, max: 64 }),
  catalogDir: textSetting('Folder of the catalogs: one `<name>.json` each', 'etc/catalog'),
  databaseUrl: optionalText('Postgres to use; without one, `quipu start` runs its own below the data folder', {
    env: 'DATABASE_URL',
    secret: true,
  }),
  databaseCaFile: optionalText(
    'Certificates (PEM) that vouch for Postgres: it is reached over TLS, and must show that it is who its address says',
  ),
  kafkaBrokers: list('Kafka brokers that hold the event log; without them it lies in Postgres', {
    env: 'KAFKA_BROKERS',
  }),
  kafkaTopic: textSetting("The event log's topic in Kafka", 'quipu.events.v1'),
  kafkaTls: flag('Kafka is reached over TLS; so it is where one of the files below is named'),
  kafkaCaFile: optionalText("Certificates (PEM) that vouch for Kafka's brokers, in place of the machine's"),
  kafkaCertFile: optionalText('Certificate (PEM) by which this process is known to Kafka'),
  kafkaKeyFile: optionalText('Private key (PEM) of that certificate'),
  kafkaSaslMechanism: optionalOneOf('How this process is known to Kafka by a user name and a password', [
    'plain',
    'scram-sha-256',
    'scram-sha-512',
  ]),
  kafkaUser: optionalText('User name for Kafka'),
  kafkaPassword: optionalText('Password for Kafka', { secret: true }),
  kafkaPasswordFile: optionalText('File that holds the password for Kafka'),
  sharedSecret: optionalText('Secret that coordinators and workers share; made in the data folder when absent', {
    secret: true,
  }),
  anchorKey: optionalText('Ed25519 key that signs anchors of the event log, made at the first start', {
    shownDefault: '<data>/anchor-key.pem',
  }),
  anchorFile: optionalText('File that anchors are appended to; audits read it', {
    shownDefault: '<data>/anchors.jsonl',
  }),
  archiveFolder: optionalText(
    'Folder that holds what has left the event log; each coordinator of the log needs it, and whoever audits',
    { shownDefault: '<data>/archive' },
  ),
  anchorWebhook: httpAddress('Address that each anchor is posted to, as JSON', { secret: true }),
  tlsCert: optionalText(
    'Certificate (PEM, with those between it and the authority) of this server: clients, coordinators and workers reach it over TLS. Read again when it changes',
  ),
  tlsKey: optionalText('Private key (PEM) of that certificate'),
  tlsCaFile: optionalText(
    'Certificates (PEM) that vouch for the coordinators and workers which this process asks, in place of public authorities',
  ),
  tlsClientCaFile: optionalText(
    "Certificates (PEM) that vouch for clients' certificates, where `tlsCaFile` is not to do so",
  ),
  environment: textSetting('Name of the deployment, shown in answers, metrics and traces', 'production'),
  coordinators: list('Addresses of the coordinators that a worker announces itself to'),
  advertisedUrl: optionalText('Address under which others reach this process, when it is not the one listened on'),
  runAs: optionalText(
    'User to become when started as root, `user` or `user:group` (names or numbers); `root` stays root. When absent the owner of the data folder, else `quipu`, `postgres` or `nobody`',
  ),
  engineUsers: optionalOneOf(
    'Whose the engines are when started as root and not left so: `own`, each a user that nobody else is, or `same` as all else. When absent their own, unless those could not read what is configured',
    ['own', 'same'],
  ),
  standby: flag('Follows the coordinator that writes the event log, and takes its place when it is gone'),
  authentication: listOf(
    'How clients are known; the first of these whose credential a request carries decides. Without one nobody is authenticated',
    ['password', 'jwt', 'oauth2', 'certificate'],
  ),
  oauth2Issuer: httpAddress(
    'Address of the identity provider (OpenID Connect), as its discovery document names it; without TLS on this machine alone',
  ),
  oauth2ClientId: optionalText('Name by which this cluster is registered there'),
  oauth2ClientSecret: optionalText('Secret of that client; none for a public one', { secret: true }),
  oauth2ClientSecretFile: optionalText('File that holds that secret'),
  oauth2Scopes: listWith('Scopes that are asked for', ['openid']),
  oauth2PrincipalField: textSetting('Claim that names who logged in', 'sub'),
  oauth2GroupsField: optionalText('Claim that names groups of who logged in'),
  passwordFile: optionalText(
    'Names and hashes of passwords, a line each as in Trino: `user:hash`, by bcrypt or PBKDF2. Read again when it changes, as the other files below',
  ),
  ldapUrl: optionalText('Directory that passwords are verified by, in place of a file: `ldaps://host:636`'),
  ldapUserBindPattern: optionalText(
    'Name that a user is bound as: `uid=${USER},ou=people,dc=example,dc=com`, or `${USER}@example.com`; several by colons',
  ),
  ldapCase: oneOf(
    'Name of a user whom the directory lets in: as typed, in small letters, or as the directory itself writes it, which must then answer "Who am I?" and let users read their own entry',
    ['lower', 'directory'],
    'lower',
  ),
  ldapCaFile: optionalText("Certificates (PEM) that vouch for the directory, in place of the machine's"),
  ldapInsecure: flag('Allows `ldap://` to another machine: passwords can be read on the way'),
  jwtKeyFile: optionalText(
    'What tokens are signed with: a public key (PEM), or a secret in Base64. `${KID}` in the name is the key id of a token',
  ),
  jwksUrl: httpAddress('Address of the keys that tokens are signed with, in place of a file: a JSON Web Key Set'),
  jwtRequiredIssuer: optionalText('Issuer that tokens must have'),
  jwtRequiredAudience: list('Audiences of which a token must have one'),
  jwtPrincipalField: textSetting('Claim that names who a token is of; of nested ones the path, by dots', 'sub'),
  jwtGroupsField: optionalText('Claim that names his groups'),
  userMappingPattern: optionalText(
    'Which verified names may come in, as which users: a regular expression for the whole name, whose first group is the user. Without one each is who he says',
  ),
  userMappingFile: optionalText("The same as rules: Trino's user mapping file"),
  groupsFile: optionalText('Groups of users, a line each as in Trino: `group:user,user`'),
  metricsToken: optionalText(
    'With authentication, and at a worker that has it, `/metrics` and `/openapi.json` are for this machine, and for who sends `Authorization: Bearer` with this',
    { secret: true },
  ),
  accessRulesFile: optionalText(
    "Who may do what: Trino's file of access control (JSON). Read again when it changes. Without one nobody acts as another, queries are their users', and tables are everybody's",
  ),
  resourceGroupsFile: optionalText(
    "How many statements of whom run at once and wait: Trino's file of resource groups (JSON). Read again when it changes. Without one `limits` says how many, and users take turns",
  ),
  sessionPropertyRulesFile: optionalText(
    "Session properties of whom and what: Trino's file of the session property manager (JSON). Read again when it changes",
  ),
  withoutDigests: flag('Results are recorded without digests: replays run what is proven good again'),
  insecure: flag('Allows a listener that is not loopback although nobody is authenticated'),
  publicHosts: list(
    'Host names under which this process may be called, besides loopback, addresses and the name it advertises; `*` for any, which lets web pages of others in',
  ),
  trustedProxies: rangeList(
    'Addresses of proxies, or ranges (`10.0.0.0/8`), that are believed who their clients are, and how those came to them: `Forwarded` (RFC 7239) or `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`',
  ),
  logLevel: oneOf(
    'Least serious line that is logged',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
  ),
  telemetry: telemetry.prefault({}),
  timeouts: timeouts.prefault({}),
  limits: limits.prefault({}),
  publishing: publishing.prefault({}),
})

/** The settings one level deeper, as in the file: `{"limits": {"openQueries": 20}}`. */
export const sections = { telemetry, timeouts, limits, publishing } as const

/** The validated, frozen configuration of a process. */
export type Config = z.output<typeof configSchema>
