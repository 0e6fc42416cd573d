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
  otlpEndpoint: httpAddress('Base address of a collector for OTLP over HTTP; without it nothing is exported', {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
  }),
  otlpTracesEndpoint: httpAddress('Full address for traces, instead of the base address', {
    env: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  }),
  otlpHeaders: namedTexts('Headers that are sent to the collector: `name=value,…`', {
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    secret: true,
  }),
  serviceName: optionalText('`service.name` of the resource; by default it names the process', {
    env: 'OTEL_SERVICE_NAME',
  }),
  resourceAttributes: namedTexts('Further resource attributes: `name=value,…`', { env: 'OTEL_RESOURCE_ATTRIBUTES' }),
  tracesSampler: optionalText(
    'Sampler of the SDK; by default it follows the parent and samples a ratio of new traces',
    {
      env: 'OTEL_TRACES_SAMPLER',
    },
  ),
  tracesSamplerArg: optionalText('Argument of the sampler', { env: 'OTEL_TRACES_SAMPLER_ARG' }),
  tracesPerSecond: optionalInteger(
    'Most new traces in a second, without those that clients ask for; default: 10 for each core, at most 50',
    { min: 1, max: 100_000 },
  ),
  sdkDisabled: flag('Switches tracing off', { env: 'OTEL_SDK_DISABLED' }),
})

/** All waits in the system that an operator may want to change. */
const timeouts = z.strictObject({
  requestHeadMs: duration('How long a client may take to send the headers of a request', 10 * second),
  requestMs: duration('How long a client may take to send a whole request', minute),
  longPollMs: duration('How long a GET of nextUri waits for new rows or a new state', second),
  sessionMs: duration('How long a log-in at the identity provider or at the log-in page is valid', 60 * minute),
  postLogWaitMs: duration('How long a POST waits for the event log before it is answered with 503', 5 * second),
  deleteValidityWaitMs: duration('How long a DELETE waits for its event to be valid before it is answered', second),
  postPlanWaitMs: duration('How long after QueryCreated is valid a POST waits for the plan', 50),
  firstAppendHoldMs: duration(
    'How long the event QueryCreated waits for further events: a statement that ends in this time needs one append',
    8,
  ),
  firstFollowMs: duration('A query is abandoned if its first nextUri was not requested within this time', 2 * minute),
  clientAbsentMs: duration('A query is abandoned if no client requested it for this time', 5 * minute),
  answersKeptMs: duration('How long the last answers and small pages are kept after the end of a query', 5 * minute),
  endedInMemoryMs: duration(
    'How long after its last request an ended query is answered from memory; later it is answered from the log',
    10 * second,
  ),
  ownWritesWaitMs: duration(
    'How long a read of the history waits until the read models have all events; after that its answer is marked stale',
    2 * second,
  ),
  anchorMs: duration('Time between two anchors of an event log that changed', minute),
  archiveAfterMs: optionalDuration(
    'Age at which records move from the event log to its archive; without it no record moves because of its age',
  ),
  archiveQueriesAfterMs: optionalDuration(
    'Age after its end (at least 25 hours) at which a query moves from the read models to files of the archive, which give the same answers; without it no query moves because of its age',
  ),
  historyReadMs: duration(
    'Longest read of the history of queries for a client; Postgres ends a longer read',
    10 * second,
  ),
  slowQueryMs: duration(
    'The coordinator logs a line with plan and operators for a query that takes longer than this',
    5 * second,
  ),
  queryRunMs: duration(
    'Longest run of a query, including its time in the queue; `query_max_run_time` of a session can lower it',
    100 * 24 * 60 * minute,
  ),
  queryExecutionMs: duration(
    'Longest run of a query from its planning on; `query_max_execution_time` of a session can lower it',
    100 * 24 * 60 * minute,
  ),
  queryPlanningMs: duration(
    'Longest planning of a query; `query_max_planning_time` of a session can lower it',
    10 * minute,
  ),
  queryCpuMs: optionalDuration(
    'Most CPU time of a query on all workers; `query_max_cpu_time` of a session can lower it',
  ),
  writerSilentMs: duration(
    'How long the writing coordinator may be silent before another coordinator claims an epoch',
    2 * second,
  ),
  writerSilentJitterMs: duration('Largest random addition to `writerSilentMs`', 300),
  workerWaitMs: duration('How long a query waits for a worker, also after a restart', 10 * second),
  workerRequestMs: duration('How long a worker may take to answer a request', 5 * second),
  pageLostMs: duration('A page is lost if its worker could not be reached for this time', 15 * second),
  coordinatorBeatMs: duration('Time between two beats of the event loops of the coordinator and the workers', second),
  coordinatorDeadMs: duration(
    'How long a coordinator or worker may be silent before its supervisor kills it',
    10 * second,
  ),
  restartBackoffMinMs: duration('First pause before a process is started again', 100),
  restartBackoffMaxMs: duration('Longest pause before a process is started again', 10 * second),
  drainMs: duration('How long a process waits for open work after SIGTERM before it ends', 10 * second),
  handOverMs: duration('How long a stopping coordinator tries to announce its end to its successor', second),
  resignMs: duration('How long a coordinator that lost the event log still answers open polls', 1500),
  verifiedPasswordMs: duration('How long a verified password is not verified again', 5 * minute),
  jwtClockSkewMs: duration('How far the clock of the issuer of tokens may differ', 30 * second),
  workerBeatMs: duration('Time between two announcements of a worker; a missed one makes the worker suspect', second),
  clustersBeatMs: duration(
    'A cluster of `clustersDir` is checked twice in this time; a check without an answer in this time has failed',
    5 * second,
  ),
  workerFailedMs: duration('How long a worker may be silent before it counts as failed', 5 * second),
  workerForgetsMs: duration('How long a worker without contact to a coordinator keeps its tasks', 10 * minute),
  engineBeatMs: duration('Time between two beats of an engine', 250),
  engineDeadMs: duration('How long an engine may be silent before it is killed', 2 * second),
  prepareMs: duration(
    'CPU time that an engine may use to prepare a statement before it is killed; it may take at most ten times as long by the clock',
    2500,
  ),
  interruptMs: duration('Time between the interrupt of a statement and the kill of its engine', 150),
  spareEngineMs: duration('How long after the process is ready the spare engine starts', 5 * second),
})

/** All limits. Exceeding one is an error with a clear message. */
const limits = z.strictObject({
  statementBytes: bytes('Longest statement', MB),
  headerBytes: bytes('Size of all headers of a request', 64 * kB),
  headers: integerSetting('Number of headers of a request', 500, { min: 20, max: 10_000 }),
  connections: integerSetting('Connections to a coordinator or worker; further ones are closed', 4_096, {
    min: 16,
    max: 1_000_000,
  }),
  connectionsPerAddress: integerSetting(
    'Connections of one user, and connections of one address without a known user (except proxies of `trustedProxies`); further ones are closed',
    1_024,
    {
      min: 8,
      max: 1_000_000,
    },
  ),
  taskBodyBytes: bytes('Largest body of a task update', 16 * MB),
  pageBytes: bytes('Size at which result pages are cut', MB),
  pageMaxBytes: bytes('Largest page; a page of one wide row can exceed `pageBytes`', 64 * MB),
  feeds: integerSetting('Readers of the live feed at the same time', 100, { min: 1, max: 10_000 }),
  feedsPerAddress: integerSetting(
    'Readers of the live feed of one user, or of one address if users are not known',
    32,
    { min: 1, max: 10_000 },
  ),
  replays: integerSetting('Readers of the live feed at the same time that are far behind the end of the log', 8, {
    min: 1,
    max: 1_000,
  }),
  actQueries: integerSetting('Queries of one act (kill, hold, release, run again, forget)', 10_000, {
    min: 1,
    max: 10_000,
  }),
  openQueries: integerSetting('Open queries', 10_000, { min: 1, max: 1_000_000 }),
  openStatementBytes: bytes(
    'Memory of all open statements together (texts, sessions, plans); a further statement is answered with 429',
    256 * MB,
  ),
  userStatementBytes: bytes('Memory of the open statements of one user', 64 * MB),
  addressStatementBytes: bytes('Memory of the open statements of one address, if users are not known', 64 * MB),
  runningQueries: integerSetting('Queries that run at the same time, if no file defines resource groups', 100, {
    min: 1,
    max: 100_000,
  }),
  queuedQueries: integerSetting('Queued queries, if no file defines resource groups', 5_000, {
    min: 0,
    max: 1_000_000,
  }),
  batchAttempts: integerSetting('How often a batch of splits is tried before its query fails', 4, {
    min: 1,
    max: 1_000,
  }),
  queryMemoryBytes: optionalBytes('Memory of a query on all workers; `query_max_memory` of a session can lower it'),
  queryNodeMemoryBytes: optionalBytes(
    'Memory of a query on one worker; `query_max_memory_per_node` of a session can lower it',
  ),
  queryScanBytes: optionalBytes(
    'Bytes that a query may read; `query_max_scan_physical_bytes` of a session can lower it',
  ),
  inlineResultBytes: bytes('Result of a statement without tables, which is made in memory', 16 * MB),
  pageMemoryBytes: bytes('Result pages of all queries in the memory of a coordinator', 64 * MB),
  endedQueries: integerSetting(
    'Ended queries that stay in memory while the read models cannot be reached; of others only the positions in the log are kept',
    2_000,
    { min: 0, max: 1_000_000 },
  ),
  endedQueryBytes: bytes('Memory of all ended queries that are kept in memory', 64 * MB),
  logRecords: optionalInteger(
    'Approximate number of records that stay in the event log; earlier ones move to its archive. Without it the log grows',
    { min: 1, max: Number.MAX_SAFE_INTEGER },
  ),
  hotQueries: optionalInteger(
    'Approximate number of ended queries that stay in the read models; those that ended earlier move to files of the archive. Without it the read models grow',
    { min: 1, max: 1_000_000_000 },
  ),
  anchorEvents: integerSetting('Number of events after which an anchor is made at once', 1000, {
    min: 1,
    max: 1_000_000,
  }),
  pageStoreQueryBytes: bytes('Size of the pages that one query keeps on disk', GB),
  pageStoreBytes: bytes('Size of the pages that a worker keeps on disk', 10 * GB),
  diskFloorBytes: bytes('Free disk space for the data folder below which no statement is accepted', GB),
  engineMemoryPercent: integerSetting("Percentage of the machine's memory that the engines of its workers share", 60, {
    min: 1,
    max: 95,
  }),
})

const day = 24 * 60 * minute

/** Settings for events that are published from the log to other systems. */
const publishing = z.strictObject({
  openLineageUrl: httpAddress(
    'Address of an OpenLineage server; runs of statements are posted to its `/api/v1/lineage`',
  ),
  openLineageFile: optionalText(
    'File to which runs of statements are appended instead, one on each line; a new file begins every 64 MB',
  ),
  openLineageApiKeyFile: optionalText('File with the key for the OpenLineage server, sent as `Authorization: Bearer`'),
  openLineageCaFile: optionalText("Certificates (PEM) to verify the OpenLineage server with, instead of the machine's"),
  openLineageNamespace: optionalText('Namespace of jobs and datasets in OpenLineage', {
    shownDefault: 'quipu://<environment>',
  }),
  openLineageStatements: flag('Sends texts of statements and messages of errors to OpenLineage, too'),
  publicKafkaBrokers: list('Kafka brokers of the public topic; without them there is no public topic'),
  publicKafkaTopic: textSetting('Name of the public topic', 'quipu.public.v1'),
  publicKafkaRetentionMs: duration('How long the public topic keeps messages, if Quipu creates it', 7 * day),
  publicKafkaTexts: flag('Publishes texts of statements and messages of errors in the public topic, too'),
  publicKafkaTls: flag(
    'Connects to the brokers of the public topic over TLS; also on if one of the files below is set',
  ),
  publicKafkaCaFile: optionalText(
    "Certificates (PEM) to verify the brokers of the public topic with, instead of the machine's",
  ),
  publicKafkaCertFile: optionalText(
    'Certificate (PEM) with which this process logs in to the brokers of the public topic',
  ),
  publicKafkaKeyFile: optionalText('Private key (PEM) of `publicKafkaCertFile`'),
  publicKafkaSaslMechanism: optionalOneOf(
    'How this process logs in to the brokers of the public topic with a user name and a password',
    ['plain', 'scram-sha-256', 'scram-sha-512'],
  ),
  publicKafkaUser: optionalText('User name for the brokers of the public topic'),
  publicKafkaPassword: optionalText('Password for the brokers of the public topic', { secret: true }),
  publicKafkaPasswordFile: optionalText('File with the password for the brokers of the public topic'),
})

/** All settings of all programs. Flags, variables and the file are read into this shape. Unknown keys are errors. */
export const configSchema = z.strictObject({
  port: integerSetting('Port for clients; 0 takes a free port', 8080, { min: 0, max: 65_535 }),
  host: textSetting(
    'Address to listen on; other addresses than loopback need authentication and TLS, or `--insecure`',
    '127.0.0.1',
  ),
  dataDir: textSetting('Folder of all data', '.quipu'),
  tablesDir: optionalText(
    'Folder of the tables of `memory` catalogs, the same for coordinator and workers; default: `tables` in the data folder',
  ),
  workers: integerSetting('Workers that `quipu start` runs', 1, { min: 0, max: 64 }),
  catalogDir: textSetting('Folder of the catalogs: a file `<name>.json` for each catalog', 'etc/catalog'),
  databaseUrl: optionalText('Postgres to use; without it `quipu start` runs its own in the data folder', {
    env: 'DATABASE_URL',
    secret: true,
  }),
  databaseCaFile: optionalText(
    'Certificates (PEM) to verify Postgres with; Quipu then connects over TLS, and the certificate must match the address',
  ),
  kafkaBrokers: list('Kafka brokers of the event log; without them the event log is in Postgres', {
    env: 'KAFKA_BROKERS',
  }),
  kafkaTopic: textSetting('Kafka topic of the event log', 'quipu.events.v1'),
  kafkaTls: flag('Connects to Kafka over TLS; also on if one of the files below is set'),
  kafkaCaFile: optionalText("Certificates (PEM) to verify Kafka's brokers with, instead of the machine's"),
  kafkaCertFile: optionalText('Certificate (PEM) with which this process logs in to Kafka'),
  kafkaKeyFile: optionalText('Private key (PEM) of `kafkaCertFile`'),
  kafkaSaslMechanism: optionalOneOf('How this process logs in to Kafka with a user name and a password', [
    'plain',
    'scram-sha-256',
    'scram-sha-512',
  ]),
  kafkaUser: optionalText('User name for Kafka'),
  kafkaPassword: optionalText('Password for Kafka', { secret: true }),
  kafkaPasswordFile: optionalText('File with the password for Kafka'),
  sharedSecret: optionalText('Secret that coordinators and workers share; by default it is made in the data folder', {
    secret: true,
  }),
  anchorKey: optionalText('Ed25519 key that signs the anchors of the event log; made at the first start', {
    shownDefault: '<data>/anchor-key.pem',
  }),
  anchorFile: optionalText('File to which anchors are appended; audits read it', {
    shownDefault: '<data>/anchors.jsonl',
  }),
  archiveFolder: optionalText(
    'Folder of the archive of the event log; every coordinator of the log and every audit needs it',
    { shownDefault: '<data>/archive' },
  ),
  anchorWebhook: httpAddress('Address to which each anchor is posted as JSON', { secret: true }),
  tlsCert: optionalText(
    'Certificate of this server (PEM, with the intermediate certificates): clients, coordinators and workers then connect over TLS. Read again when it changes',
  ),
  tlsKey: optionalText('Private key (PEM) of `tlsCert`'),
  tlsCaFile: optionalText('Certificates (PEM) to verify coordinators and workers with, instead of public authorities'),
  tlsClientCaFile: optionalText('Certificates (PEM) to verify certificates of clients with, instead of `tlsCaFile`'),
  environment: textSetting('Name of the deployment, shown in answers, metrics and traces', 'production'),
  coordinators: list('Addresses of the coordinators to which a worker announces itself'),
  advertisedUrl: optionalText(
    'Address under which others reach this process, if it differs from the listening address',
  ),
  runAs: optionalText(
    'User that Quipu becomes when root starts it: `user` or `user:group` (names or numbers); `root` stays root. Default: the owner of the data folder, else `quipu`, `postgres` or `nobody`',
  ),
  engineUsers: optionalOneOf(
    'Users of engines when root starts Quipu and Quipu does not stay root: `own` gives each engine a user of its own, `same` the user of all other processes. Default: `own`, unless those users could not read the configured files',
    ['own', 'same'],
  ),
  standby: flag('Follows the coordinator that writes the event log, and takes over when that coordinator is gone'),
  authentication: listOf(
    'How clients are authenticated; the first method for which a request has a credential decides. Without it no client is authenticated',
    ['password', 'jwt', 'oauth2', 'certificate'],
  ),
  oauth2Issuer: httpAddress(
    'Address of the identity provider (OpenID Connect), as its discovery document names it; `http://` only on this machine',
  ),
  oauth2ClientId: optionalText('Client id of this cluster at the identity provider'),
  oauth2ClientSecret: optionalText('Client secret at the identity provider; none for a public client', {
    secret: true,
  }),
  oauth2ClientSecretFile: optionalText('File with the client secret'),
  oauth2Scopes: listWith('Scopes that are requested', ['openid']),
  oauth2PrincipalField: textSetting('Claim with the name of the user', 'sub'),
  oauth2GroupsField: optionalText('Claim with the groups of the user'),
  passwordFile: optionalText(
    'File with users and hashes of passwords, one on each line as in Trino: `user:hash`, with bcrypt or PBKDF2 of SHA-1. PBKDF2 of SHA-256 is possible too, but not in Trino. Like the other files below, it is read again when it changes',
  ),
  ldapUrl: optionalText('Directory that verifies passwords, instead of a file: `ldaps://host:636`'),
  ldapUserBindPattern: optionalText(
    'Name with which a user is bound: `uid=${USER},ou=people,dc=example,dc=com`, or `${USER}@example.com`; colons separate several patterns',
  ),
  ldapCase: oneOf(
    'Name of a user that the directory accepted: `lower` is the typed name in lower case; `directory` is the name as the directory writes it, which must then answer "Who am I?" and let users read their own entry',
    ['lower', 'directory'],
    'lower',
  ),
  ldapCaFile: optionalText("Certificates (PEM) to verify the directory with, instead of the machine's"),
  ldapInsecure: flag('Allows `ldap://` to another machine, although others can read passwords on the way'),
  jwtKeyFile: optionalText(
    'File with the key that verifies tokens: a public key (PEM), or a secret in Base64. `${KID}` in the name is the key id of a token',
  ),
  jwksUrl: httpAddress('Address of a JSON Web Key Set with the keys that verify tokens, instead of a file'),
  jwtRequiredIssuer: optionalText('Issuer that tokens must have'),
  jwtRequiredAudience: list('Audiences; a token must have one of them'),
  jwtPrincipalField: textSetting("Claim with the name of a token's user; for a nested claim its path with dots", 'sub'),
  jwtGroupsField: optionalText("Claim with the groups of a token's user"),
  userMappingPattern: optionalText(
    'Regular expression for the whole verified name; its first group is the user, and other names are refused. Without it the verified name is the user',
  ),
  userMappingFile: optionalText("Trino's user mapping file, instead of one pattern"),
  groupsFile: optionalText('File with the groups of users, one on each line as in Trino: `group:user,user`'),
  metricsToken: optionalText(
    'Token for `/metrics` and `/openapi.json`. With authentication, and on a worker with this setting, they answer only this machine and requests with `Authorization: Bearer` and this token',
    { secret: true },
  ),
  accessRulesFile: optionalText(
    "Access rules: Trino's file of access control (JSON). Read again when it changes. Without it users cannot act as other users, see only their own queries, and may use all tables",
  ),
  resourceGroupsFile: optionalText(
    "How many statements run and wait in which group: Trino's file of resource groups (JSON). Read again when it changes. Without it `limits` sets the numbers, and users share them fairly",
  ),
  sessionPropertyRulesFile: optionalText(
    "Session properties by user, source and the like: Trino's file of the session property manager (JSON). Read again when it changes",
  ),
  routingRulesFile: optionalText(
    'Where statements run, here or at clusters of Trino: a file of routing rules (JSON). Read again when it changes',
  ),
  pricesFile: optionalText(
    'Prices of CPU time, bytes and clusters for the costs in `system.history` (JSON). Read again when it changes',
  ),
  clustersDir: optionalText(
    'Folder of the clusters for delegated statements: a file `<name>.json` for each cluster. Read again when it changes',
  ),
  withoutDigests: flag('Records results without digests; a replay then runs each statement on the baseline too'),
  insecure: flag('Allows another listening address than loopback without authentication or TLS'),
  publicHosts: list(
    'Host names for requests to this process, besides loopback, IP addresses and its advertised name; `*` allows any name, also for web pages of other sites',
  ),
  trustedProxies: rangeList(
    'Addresses of trusted proxies, or ranges (`10.0.0.0/8`). Quipu believes their headers about clients: `Forwarded` (RFC 7239) or `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`',
  ),
  logLevel: oneOf(
    'Lowest level of lines that are logged',
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
