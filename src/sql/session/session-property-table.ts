export type SessionPropertyType = 'boolean' | 'bigint' | 'integer' | 'double' | 'varchar'

/** A constraint on values besides the type. A list: one of these words; a number: the minimum. */
export type ValueRule = 'duration' | 'data size' | 'power of 2' | 'part of 1' | number | readonly string[]

export interface SessionProperty {
  readonly name: string
  readonly type: SessionPropertyType
  /** The default as SHOW SESSION shows it; undefined for NULL. */
  readonly defaultValue: string | undefined
  readonly description: string
  /**
   * False if nothing reads the property: SET SESSION checks and keeps it, SHOW SESSION shows it, and the client gets a
   * warning.
   */
  readonly acts: boolean
  readonly rule: ValueRule | undefined
  /** Whether SHOW SESSION lists it. */
  readonly shown: boolean
}

/**
 * The session properties that have an effect, by name. Code reads them with `propertyValue`, whose result has the type
 * given here. To give a property from the list below an effect, move it up.
 */
export const actingProperties = {
  max_recursion_depth: {
    type: 'integer',
    defaultValue: '10',
    description: 'Maximum recursion depth for recursive common table expression',
    rule: 1,
    shown: true,
  },
  query_priority: {
    type: 'integer',
    defaultValue: '1',
    description: 'The priority of queries. Larger numbers are higher priority',
    rule: 1,
    shown: true,
  },
  query_max_cpu_time: {
    type: 'varchar',
    defaultValue: '1000000000.00d',
    description: 'Maximum CPU time of a query',
    rule: 'duration',
    shown: true,
  },
  query_max_execution_time: {
    type: 'varchar',
    defaultValue: '100.00d',
    description: 'Maximum execution time of a query',
    rule: 'duration',
    shown: true,
  },
  // Trino's SHOW SESSION lists neither memory limits nor the retry policy.
  query_max_memory: {
    type: 'varchar',
    defaultValue: undefined,
    description: 'Maximum amount of distributed memory a query can use',
    rule: 'data size',
    shown: false,
  },
  query_max_memory_per_node: {
    type: 'varchar',
    defaultValue: undefined,
    description: 'Maximum amount of memory a query can use per node',
    rule: 'data size',
    shown: false,
  },
  query_max_planning_time: {
    type: 'varchar',
    defaultValue: '10.00m',
    description: 'Maximum planning time of a query',
    rule: 'duration',
    shown: true,
  },
  query_max_run_time: {
    type: 'varchar',
    defaultValue: '100.00d',
    description: 'Maximum run time of a query (includes the queueing time)',
    rule: 'duration',
    shown: true,
  },
  query_max_scan_physical_bytes: {
    type: 'varchar',
    defaultValue: undefined,
    description: 'Maximum scan physical bytes of a query',
    rule: 'data size',
    shown: true,
  },
  query_retry_attempts: {
    type: 'integer',
    defaultValue: '4',
    description: 'Maximum number of query retry attempts',
    rule: 0,
    shown: true,
  },
  // Tasks are retried by default here; Trino's default is NONE.
  retry_policy: {
    type: 'varchar',
    defaultValue: 'TASK',
    description: 'Retry policy. Possible values: [NONE, TASK, QUERY]',
    rule: ['NONE', 'TASK', 'QUERY'],
    shown: false,
  },
  task_retry_attempts_per_task: {
    type: 'integer',
    defaultValue: '4',
    description: 'Maximum number of task retry attempts per single task',
    rule: 0,
    shown: true,
  },
  // Carries the zone of SET TIME ZONE from one statement to the next; SET TIME ZONE has its own syntax.
  time_zone_id: {
    type: 'varchar',
    defaultValue: undefined,
    description: 'Time zone of the session, before that of the client',
    rule: undefined,
    shown: false,
  },
} as const satisfies Readonly<
  Record<string, Pick<SessionProperty, 'type' | 'defaultValue' | 'description' | 'rule' | 'shown'>>
>

/**
 * Trino's other session properties. They are accepted without effect, and the client gets a warning. An empty default
 * is NULL.
 */
export const acceptedProperties: readonly (readonly [
  name: string,
  defaultValue: string,
  type: SessionPropertyType,
  description: string,
  rule?: ValueRule,
])[] = [
  [
    'adaptive_partial_aggregation_enabled',
    'true',
    'boolean',
    'When enabled, partial aggregation might be adaptively turned off when it does not provide any performance gain',
  ],
  [
    'adaptive_partial_aggregation_unique_rows_ratio_threshold',
    '0.8',
    'double',
    'Ratio between aggregation output and input rows above which partial aggregation might be adaptively turned off',
  ],
  [
    'aggregation_operator_unspill_memory_limit',
    '4MB',
    'varchar',
    'How much memory should be allocated per aggregation operator in unspilling process',
    'data size',
  ],
  ['collect_plan_statistics_for_all_queries', 'false', 'boolean', 'Collect plan statistics for non-EXPLAIN queries'],
  ['colocated_join', 'true', 'boolean', 'Use a colocated join when possible'],
  ['columnar_filter_evaluation_enabled', 'true', 'boolean', 'Enables columnar evaluation of filters'],
  [
    'default_filter_factor_enabled',
    'false',
    'boolean',
    'use a default filter factor for unknown filters in a filter node',
  ],
  [
    'determine_partition_count_for_write_enabled',
    'false',
    'boolean',
    'Determine the number of partitions based on amount of data read and processed by the query for write queries',
  ],
  ['dictionary_aggregation', 'false', 'boolean', 'Enable optimization for aggregations on dictionaries'],
  [
    'distinct_aggregations_strategy',
    '',
    'varchar',
    'Strategy to use for distinct aggregations.. Possible values: [SINGLE_STEP, MARK_DISTINCT, PRE_AGGREGATE, SPLIT_TO_SUBQUERIES, AUTOMATIC]',
    ['SINGLE_STEP', 'MARK_DISTINCT', 'PRE_AGGREGATE', 'SPLIT_TO_SUBQUERIES', 'AUTOMATIC'],
  ],
  ['distributed_sort', 'true', 'boolean', 'Parallelize sort across multiple nodes'],
  [
    'dynamic_row_filtering_selectivity_threshold',
    '0.7',
    'double',
    'Avoid using dynamic row filters when fraction of rows selected is above threshold',
    'part of 1',
  ],
  ['enable_dynamic_filtering', 'true', 'boolean', 'Enable dynamic filtering'],
  [
    'enable_dynamic_row_filtering',
    'true',
    'boolean',
    'Enable fine-grained filtering of rows in the scan operator using dynamic filters',
  ],
  ['enable_intermediate_aggregations', 'false', 'boolean', 'Enable the use of intermediate aggregations'],
  ['enable_large_dynamic_filters', 'true', 'boolean', 'Enable collection of large dynamic filters'],
  ['enable_stats_calculator', 'true', 'boolean', 'Enable statistics calculator'],
  [
    'exchange_compression_codec',
    'NONE',
    'varchar',
    'Compression codec used for data in exchanges, supports NONE, LZ4, ZSTD. Possible values: [NONE, LZ4, ZSTD]',
    ['NONE', 'LZ4', 'ZSTD'],
  ],
  ['execution_policy', 'phased', 'varchar', 'Policy used for scheduling query tasks'],
  [
    'fault_tolerant_execution_adaptive_join_reordering_enabled',
    'true',
    'boolean',
    'Reorder partitioned join based on run time stats in fault tolerant execution',
  ],
  [
    'fault_tolerant_execution_adaptive_query_planning_enabled',
    'true',
    'boolean',
    'Enable adaptive query planning for the fault tolerant execution',
  ],
  [
    'filter_and_project_min_output_page_row_count',
    '256',
    'integer',
    'Experimental: Minimum output page row count for filter and project operators',
  ],
  [
    'filter_and_project_min_output_page_size',
    '500kB',
    'varchar',
    'Experimental: Minimum output page size for filter and project operators',
    'data size',
  ],
  [
    'filter_conjunction_independence_factor',
    '0.75',
    'double',
    'Scales the strength of independence assumption for selectivity estimates of the conjunction of multiple filters',
    'part of 1',
  ],
  [
    'force_spilling_join',
    'false',
    'boolean',
    'Force the usage of spliing join operator in favor of the non-spilling one, even if spill is not enabled',
  ],
  [
    'hide_inaccessible_columns',
    'false',
    'boolean',
    'When enabled non-accessible columns are silently filtered from results from SELECT * statements',
  ],
  ['ignore_downstream_preferences', 'false', 'boolean', "Ignore Parent's PreferredProperties in AddExchange optimizer"],
  ['ignore_stats_calculator_failures', 'true', 'boolean', 'Ignore statistics calculator failures'],
  [
    'incremental_hash_array_load_factor_enabled',
    'true',
    'boolean',
    'Use smaller load factor for small hash arrays in order to improve performance',
  ],
  ['initial_splits_per_node', '4', 'integer', 'The number of splits each node will run per task, initially'],
  [
    'iterative_optimizer_timeout',
    '3.00m',
    'varchar',
    'Timeout for plan optimization in iterative optimizer',
    'duration',
  ],
  [
    'join_distribution_type',
    'AUTOMATIC',
    'varchar',
    'Join distribution type. Possible values: [BROADCAST, PARTITIONED, AUTOMATIC]',
    ['BROADCAST', 'PARTITIONED', 'AUTOMATIC'],
  ],
  [
    'join_max_broadcast_table_size',
    '100MB',
    'varchar',
    'Maximum estimated size of a table that can be broadcast when using automatic join type selection',
    'data size',
  ],
  [
    'join_multi_clause_independence_factor',
    '0.25',
    'double',
    'Scales the strength of independence assumption for selectivity estimates of multi-clause joins',
    'part of 1',
  ],
  [
    'join_partitioned_build_min_row_count',
    '1000000',
    'bigint',
    'Minimum number of join build side rows required to use partitioned join lookup',
    0,
  ],
  [
    'join_reordering_strategy',
    'AUTOMATIC',
    'varchar',
    'Join reordering strategy. Possible values: [NONE, ELIMINATE_CROSS_JOINS, AUTOMATIC]',
    ['NONE', 'ELIMINATE_CROSS_JOINS', 'AUTOMATIC'],
  ],
  [
    'mark_distinct_strategy',
    '',
    'varchar',
    'Deprecated. Strategy to use for distinct aggregations.. Possible values: [NONE, ALWAYS, AUTOMATIC]',
    ['NONE', 'ALWAYS', 'AUTOMATIC'],
  ],
  ['max_drivers_per_task', '', 'integer', 'Maximum number of drivers per task', 1],
  [
    'max_hash_partition_count',
    '100',
    'integer',
    'Maximum number of partitions for distributed joins and aggregations',
    1,
  ],
  [
    'max_partial_top_n_memory',
    '16MB',
    'varchar',
    "Max memory size for partial Top N aggregations. This can be turned off by setting it with '0'.",
    'data size',
  ],
  [
    'max_reordered_joins',
    '8',
    'integer',
    'The maximum number of joins to reorder as one group in cost-based join reordering',
  ],
  [
    'max_tasks_waiting_for_execution_per_query',
    '10',
    'integer',
    'Maximum number of tasks waiting to be scheduled per query. Split enumeration is paused by the scheduler when this threshold is crossed',
  ],
  [
    'max_tasks_waiting_for_node_per_query',
    '50',
    'integer',
    'Maximum possible number of tasks waiting for node allocation per query before scheduling of new tasks is paused',
  ],
  [
    'max_unacknowledged_splits_per_task',
    '2000',
    'integer',
    'Maximum number of leaf splits awaiting delivery to a given task',
    1,
  ],
  ['max_writer_task_count', '100', 'integer', 'Maximum number of tasks that will participate in writing data', 1],
  ['merge_project_with_values', 'true', 'boolean', 'Inline project expressions into values'],
  [
    'min_hash_partition_count',
    '4',
    'integer',
    'Minimum number of partitions for distributed joins and aggregations',
    1,
  ],
  [
    'min_hash_partition_count_for_write',
    '50',
    'integer',
    'Minimum number of partitions for distributed joins and aggregations in write queries',
    1,
  ],
  [
    'min_input_rows_per_task',
    '10000000',
    'bigint',
    'Minimum input rows required per task. This will help optimizer determine hash partition count for joins and aggregations',
    0,
  ],
  [
    'min_input_size_per_task',
    '5GB',
    'varchar',
    'Minimum input data size required per task. This will help optimizer determine hash partition count for joins and aggregations',
    'data size',
  ],
  [
    'non_estimatable_predicate_approximation_enabled',
    'true',
    'boolean',
    'Approximate the cost of filters which cannot be accurately estimated even with complete statistics',
  ],
  [
    'omit_datetime_type_precision',
    'false',
    'boolean',
    'Omit precision when rendering datetime type names with default precision',
  ],
  ['optimize_duplicate_insensitive_joins', 'true', 'boolean', 'Optimize duplicate insensitive joins'],
  ['optimize_metadata_queries', 'false', 'boolean', 'Enable optimization for metadata queries'],
  ['optimize_top_n_ranking', 'true', 'boolean', 'Use top N ranking optimization'],
  [
    'pre_aggregate_case_aggregations_enabled',
    'true',
    'boolean',
    'Pre-aggregate rows before GROUP BY with multiple CASE aggregations on same column',
  ],
  ['predicate_pushdown_use_table_properties', 'true', 'boolean', 'Use table properties in predicate pushdown'],
  ['prefer_partial_aggregation', 'true', 'boolean', 'Prefer splitting aggregations into partial and final stages'],
  ['prefer_streaming_operators', 'false', 'boolean', 'Prefer source table layouts that produce streaming operators'],
  ['push_aggregation_through_outer_join', 'true', 'boolean', 'Allow pushing aggregations below joins'],
  [
    'push_filter_into_values_max_row_count',
    '100',
    'integer',
    'Maximum number of rows in values for which filter is pushed down into values',
  ],
  ['push_partial_aggregation_through_join', 'true', 'boolean', 'Push partial aggregations below joins'],
  [
    'push_table_write_through_union',
    'true',
    'boolean',
    'Parallelize writes when using UNION ALL in queries that write data',
  ],
  ['redistribute_writes', 'true', 'boolean', 'Force parallel distributed writes'],
  [
    'remote_task_adaptive_update_request_size_enabled',
    'true',
    'boolean',
    'Experimental: Enable adaptive adjustment for size of remote task update request',
  ],
  ['remote_task_guaranteed_splits_per_request', '3', 'integer', 'Guaranteed splits per remote task request'],
  [
    'remote_task_max_request_size',
    '8MB',
    'varchar',
    'Experimental: Max size of remote task update request',
    'data size',
  ],
  [
    'remote_task_request_size_headroom',
    '2MB',
    'varchar',
    'Experimental: Headroom for size of remote task update request',
    'data size',
  ],
  [
    'required_workers_count',
    '1',
    'integer',
    'Minimum number of active workers that must be available before the query will start',
  ],
  [
    'required_workers_max_wait_time',
    '5.00m',
    'varchar',
    'Maximum time to wait for minimum number of workers before the query is failed',
    'duration',
  ],
  ['resource_overcommit', 'false', 'boolean', 'Use resources which are not guaranteed to be available to the query'],
  [
    'retry_delay_scale_factor',
    '2.0',
    'double',
    "Maximum delay before initiating a retry attempt. Delay increases exponentially for each subsequent attempt starting from 'retry_initial_delay'",
    1,
  ],
  [
    'retry_initial_delay',
    '10.00s',
    'varchar',
    "Initial delay before initiating a retry attempt. Delay increases exponentially for each subsequent attempt up to 'retry_max_delay'",
    'duration',
  ],
  [
    'retry_max_delay',
    '1.00m',
    'varchar',
    "Maximum delay before initiating a retry attempt. Delay increases exponentially for each subsequent attempt starting from 'retry_initial_delay'",
    'duration',
  ],
  [
    'rewrite_filtering_semi_join_to_inner_join',
    'true',
    'boolean',
    'Rewrite semi join in filtering context to inner join',
  ],
  ['scale_writers', 'true', 'boolean', 'Scale out writers based on throughput (use minimum necessary)'],
  ['skip_redundant_sort', 'true', 'boolean', 'Skip redundant sort operations'],
  ['spatial_join', 'true', 'boolean', 'Use spatial index for spatial join when possible'],
  ['spatial_partitioning_table_name', '', 'varchar', 'Name of the table containing spatial partitioning scheme'],
  ['spill_enabled', 'false', 'boolean', 'Enable spilling'],
  [
    'split_concurrency_adjustment_interval',
    '100.00ms',
    'varchar',
    'Experimental: Interval between changes to the number of concurrent splits per node',
    'duration',
  ],
  [
    'statistics_cpu_timer_enabled',
    'true',
    'boolean',
    'Experimental: Enable cpu time tracking for automatic column statistics collection on write',
  ],
  [
    'statistics_precalculation_for_pushdown_enabled',
    'true',
    'boolean',
    'Enable statistics precalculation for pushdown',
  ],
  [
    'table_scan_node_partitioning_min_bucket_to_task_ratio',
    '0.5',
    'double',
    'Min table scan bucket to task ratio for which plan will be adopted to node pre-partitioned tables',
  ],
  ['task_concurrency', '2', 'integer', 'Default number of local parallel jobs per worker', 'power of 2'],
  [
    'task_max_writer_count',
    '4',
    'integer',
    'Maximum number of local parallel table writers per task when either task writer scaling or preferred partitioning is used',
    'power of 2',
  ],
  [
    'task_min_writer_count',
    '1',
    'integer',
    'Minimum number of local parallel table writers per task when preferred partitioning and task writer scaling are not used',
    'power of 2',
  ],
  [
    'task_scale_writers_enabled',
    'true',
    'boolean',
    'Scale the number of concurrent table writers per task based on throughput',
  ],
  ['task_share_index_loading', 'false', 'boolean', 'Share index join lookups and caching within a task'],
  [
    'use_cost_based_partitioning',
    'true',
    'boolean',
    'When enabled the cost based optimizer is used to determine if repartitioning the output of an already partitioned stage is necessary',
  ],
  [
    'use_exact_partitioning',
    'false',
    'boolean',
    'When enabled this forces data repartitioning unless the partitioning of upstream stage matches exactly what downstream stage expects',
  ],
  ['use_legacy_window_filter_pushdown', 'false', 'boolean', 'Use legacy window filter pushdown optimizer'],
  ['use_preferred_write_partitioning', 'true', 'boolean', 'Use preferred write partitioning'],
  ['use_table_scan_node_partitioning', 'true', 'boolean', 'Adapt plan to node pre-partitioned tables'],
  [
    'writer_scaling_min_data_processed',
    '120MB',
    'varchar',
    'Minimum amount of uncompressed output data processed by writers before writer scaling can happen',
    'data size',
  ],
]
