import { keptField, macro, type Macro } from './macro.ts'

/** The largest length of a list that counts as short. */
const FEW = 16

/**
 * A map of a list of entries {k, v}, grouped.
 * @param key the field by which entries are equal
 * @param value the value of a group: `qm1` are the entries, `qm2` the indexes of the group's entries
 */
function grouped(name: string, key: 'k' | 'q', value: string): Macro {
  return macro(
    `${name}(l)`,
    `
      CASE
        WHEN l IS NOT NULL THEN list_transform([l], lambda qm1: map_from_entries(list_transform(q_groups(list_transform(qm1,
            lambda e: e.${key})), lambda qm2: {'k': qm1[qm2[1]].k, 'v': ${value}})))[1]
      END
    `,
  )
}

/** Joins conditions in three-valued logic: `decisive` wins, then NULL. */
function verdict(name: string, decisive: boolean): Macro {
  return macro(
    `${name}(b)`,
    `
      CASE
        WHEN b IS NULL THEN NULL
        WHEN list_contains(b, ${decisive}) THEN ${decisive}
        WHEN list_position(b, NULL) IS NOT NULL THEN NULL
        ELSE ${!decisive}
      END
    `,
  )
}

/** A function of two vectors of equal length, in which NULL counts as 0. */
function vectors(name: string, call: 'list_dot_product' | 'list_distance'): Macro {
  return macro(
    `${name}(a, b)`,
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(a) <> len(b) THEN u_raise('INVALID_FUNCTION_ARGUMENT: The arguments must have the same length')
        WHEN len(a) = 0 THEN CAST(0 AS DOUBLE)
        ELSE ${call}(list_transform(a, lambda q8: coalesce(q8, CAST(0 AS DOUBLE))), list_transform(b,
            lambda q9: coalesce(q9, CAST(0 AS DOUBLE))))
      END
    `,
  )
}

/** The largest or smallest number of an array; NaN only where all are. */
function floatingExtremum(name: 'max' | 'min'): Macro {
  return macro(
    `q_array_${name}_floating(a)`,
    `
      CASE
        WHEN list_position(a, NULL) IS NULL THEN coalesce(list_${name}(list_filter(a, lambda q3: NOT isnan(q3))),
            list_${name}(a))
      END
    `,
  )
}

/** Arrays and maps: indexing, membership, comparison, construction. */
export const collectionMacros: readonly Macro[] = [
  macro('q_map_first(l)', `map_from_entries(list_filter(l, lambda e, i: i = 1 OR e.k IS DISTINCT FROM l[i - 1].k))`),
  // Sorting puts equal keys next to each other, each with its index: comparing every key with every other would take
  // quadratic time. So would slices and searches of a list in a lambda over its elements.
  macro('q_placed(ks)', `list_sort(coalesce(list_transform(ks, lambda qp1, qp2: {'k': qp1, 'i': qp2}), []))`),
  macro('q_at(l, places)', `list_transform([l], lambda qp9: list_transform(places, lambda qp10: qp9[qp10]))[1]`),
  // The indexes of keys that are not equal to an earlier key, ascending.
  macro(
    'q_firsts(ks)',
    `
      list_transform([q_placed(ks)], lambda qp3: list_sort(list_transform(list_filter(qp3, lambda qp4, qp5: qp5 = 1
          OR qp4.k IS DISTINCT FROM qp3[qp5 - 1].k), lambda qp6: qp6.i)))[1]
    `,
  ),
  // The index of the first key that is equal to an earlier key.
  macro(
    'q_repeated(ks)',
    `
      list_transform([q_placed(ks)], lambda qp3: list_min(list_transform(list_filter(qp3, lambda qp4, qp5: qp5 > 1
          AND qp4.k IS NOT DISTINCT FROM qp3[qp5 - 1].k), lambda qp6: qp6.i)))[1]
    `,
  ),
  // Lists of the indexes of equal keys, in the order of the first key of each list.
  macro(
    'q_groups(ks)',
    `
      list_transform([q_placed(ks)], lambda qp3: list_transform([list_filter(range(1, len(qp3) + 1), lambda qp4: qp4
          = 1 OR qp3[qp4].k IS DISTINCT FROM qp3[qp4 - 1].k)], lambda qp5: list_sort(list_transform(qp5, lambda qp6,
          qp7: list_transform(range(qp6, coalesce(qp5[qp7 + 1], len(qp3) + 1)), lambda qp8: qp3[qp8].i))))[1])[1]
    `,
  ),
  // The indexes of keys, each key once, that are among others, or that are not.
  macro(
    'q_firsts_among(ks, others, has)',
    `
      list_transform([list_sort(coalesce(list_concat(list_transform(ks, lambda qp1, qp2: {'k': qp1, 'o': 1, 'i': qp2}),
          list_transform(others, lambda qp1: {'k': qp1, 'o': 0, 'i': CAST(0 AS BIGINT)})), []))], lambda qp3:
          list_sort(list_transform(list_filter(qp3, lambda qp4, qp5: qp4.o = 1 AND CASE
        WHEN qp5 > 1 AND qp4.k IS NOT DISTINCT FROM qp3[qp5 - 1].k THEN has AND qp3[qp5 - 1].o = 0
        ELSE NOT has
      END), lambda qp6: qp6.i)))[1]
    `,
  ),
  grouped('q_multimap', 'k', 'list_transform(qm2, lambda qm3: qm1[qm3].v)'),
  // For entries whose keys are distinguished by a separate value.
  grouped('q_map_first_keyed', 'q', 'qm1[qm2[1]].v'),
  grouped('q_multimap_keyed', 'q', 'list_transform(qm2, lambda qm3: qm1[qm3].v)'),
  grouped('q_histogram_keyed', 'q', 'CAST(len(qm2) AS BIGINT)'),
  // The first of several values for a key counts.
  macro(
    'q_map_union(l)',
    `
      CASE
        WHEN l IS NOT NULL THEN list_transform([flatten(list_transform(l, lambda qm1: map_entries(qm1)))], lambda
            qm2: map_from_entries(q_at(qm2, q_firsts(list_transform(qm2, lambda qm3: qm3.key)))))[1]
      END
    `,
  ),
  // In a short list (at most FEW elements) a search for each element is faster than a sort.
  macro(
    'q_array_distinct(a)',
    `
      list_transform([a], lambda qe1: CASE
        WHEN len(qe1) <= ${FEW} THEN list_filter(qe1, lambda qe2, qe3: list_position(qe1, qe2) = qe3)
        WHEN qe1 IS NOT NULL THEN q_at(qe1, q_firsts(qe1))
      END)[1]
    `,
  ),
  // The elements of a, each once, that b has, or that b does not have.
  macro(
    'q_among(a, b, has)',
    `
      list_transform([{'a': ${keptField('a')}, 'b': ${keptField('b')}}], lambda qe1: CASE
        WHEN len(qe1.a) <= ${FEW} AND len(qe1.b) <= ${FEW} THEN list_filter(qe1.a, lambda qe2, qe3:
            list_position(qe1.a, qe2) = qe3 AND (list_position(qe1.b, qe2) IS NOT NULL) = has)
        ELSE q_at(qe1.a, q_firsts_among(qe1.a, qe1.b, has))
      END)[1]
    `,
  ),
  macro('q_array_sort(a)', `list_sort(a, 'ASC', 'NULLS LAST')`),
  macro('q_array_union(a, b)', `q_array_distinct(list_concat(a, b))`),
  macro(
    'q_overlap(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN list_has_any(list_filter(a, lambda q1: q1 IS NOT NULL), b) THEN true
        WHEN (list_position(a, NULL) IS NOT NULL AND len(b) > 0) OR (list_position(b, NULL) IS NOT NULL AND len(a) >
            0) THEN NULL
        ELSE false
      END
    `,
  ),
  macro(
    'q_contains(a, x)',
    `
      CASE
        WHEN a IS NULL OR x IS NULL THEN NULL
        WHEN list_contains(a, x) THEN true
        WHEN list_position(a, NULL) IS NOT NULL THEN NULL
        ELSE false
      END
    `,
  ),
  macro(
    'q_array_join(a, s)',
    `CASE WHEN a IS NOT NULL AND s IS NOT NULL THEN q_joined(list_filter(a, lambda q1: q1 IS NOT NULL), s) END`,
  ),
  // For a separator that is not NULL.
  macro(
    'q_array_join_by(a, s, n)',
    `
      CASE
        WHEN a IS NOT NULL AND n IS NOT NULL THEN
            coalesce(array_to_string(list_transform(a, lambda q1: coalesce(q1, n)), s), '')
      END
    `,
  ),
  macro(
    'q_array_join3(a, s, n)',
    `
      CASE
        WHEN a IS NOT NULL AND s IS NOT NULL AND n IS NOT NULL THEN q_joined(list_transform(a, lambda q1: coalesce(q1,
            n)), s)
      END
    `,
  ),
  macro(
    'q_subscript(a, i)',
    `
      CASE
        WHEN a IS NULL OR i IS NULL THEN NULL
        WHEN i = 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: SQL array indices start at 1')
        WHEN i < 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Array subscript is negative: ' || i)
        WHEN i > len(a) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Array subscript must be less than or equal to array length: ' || i
            || ' > ' || len(a))
        ELSE a[i]
      END
    `,
  ),
  // If the end would be beyond 64 bits, the slice is empty, as in Trino.
  macro(
    'q_slice(a, s, n)',
    `
      CASE
        WHEN a IS NULL OR s IS NULL OR n IS NULL THEN NULL
        WHEN n < 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: length must be greater than or equal to 0')
        WHEN s = 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: SQL array indices start at 1')
        WHEN s > len(a) OR s < -len(a) THEN list_slice(a, 1, 0)
        WHEN n > 9223372036854775807 - CASE WHEN s > 0 THEN s ELSE len(a) + s + 1 END THEN list_slice(a, 1, 0)
        WHEN s > 0 THEN list_slice(a, s, least(s + n - 1, len(a)))
        ELSE list_slice(a, len(a) + s + 1, least(len(a) + s + n, len(a)))
      END
    `,
  ),
  macro(
    'q_trim_array(a, n)',
    `
      CASE
        WHEN a IS NULL OR n IS NULL THEN NULL
        WHEN n < 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: size must not be negative: ' || n)
        WHEN n > len(a) THEN u_raise('INVALID_FUNCTION_ARGUMENT: size must not exceed array cardinality ' || len(a)
            || ': ' || n)
        ELSE list_slice(a, 1, len(a) - n)
      END
    `,
  ),
  macro(
    'q_repeat(x, n)',
    `
      CASE
        WHEN n IS NULL THEN NULL
        WHEN n < 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: count argument of repeat function must be greater than or equal to 0')
        WHEN n > 10000 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: count argument of repeat function must be less than or equal to 10000')
        ELSE list_transform(range(n), lambda q1: x)
      END
    `,
  ),
  macro(
    'q_sequence(a, b, s)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL OR s IS NULL THEN NULL
        WHEN s = 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: step must not be zero')
        WHEN (s > 0 AND b < a) OR (s < 0 AND b > a) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: sequence stop value should be greater than or equal to start value if step is greater than zero otherwise stop should be less than or equal to start')
        WHEN (CAST(b AS HUGEINT) - a) // s >= 10000 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: result of sequence function must not have more than 10000 entries')
        ELSE generate_series(a, b, s)
      END
    `,
  ),
  verdict('q_all', false),
  verdict('q_any', true),
  macro(
    'q_ahist(a)',
    `
      CASE
        WHEN a IS NOT NULL THEN list_transform([list_filter(a, lambda qh1: qh1 IS NOT NULL)], lambda qh2:
            map_from_entries(list_transform(q_groups(qh2), lambda qh3: {'k': qh2[qh3[1]], 'v': CAST(len(qh3) AS
            BIGINT)})))[1]
      END
    `,
  ),
  macro(
    'q_ngrams(a, n)',
    `
      CASE
        WHEN a IS NULL OR n IS NULL THEN NULL
        WHEN n <= 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: N must be positive')
        WHEN len(a) <= n THEN [a]
        ELSE list_transform([a], lambda q1: list_transform(range(1, len(q1) - n + 2), lambda q2:
            list_transform(range(q2, q2 + n), lambda q3: q1[q3])))[1]
      END
    `,
  ),
  macro(
    'q_comb(a, n)',
    `
      CASE
        WHEN a IS NULL OR n IS NULL THEN NULL
        WHEN n = 0 THEN [list_slice(a, 1, 0)]
        ELSE list_transform([{'a': ${keptField('a')}, 'i': CAST(u_combinations(len(a), n) AS BIGINT[])}], lambda q1:
            list_transform(range(len(q1.i) // n), lambda q2: list_transform(range(q2 * n + 1, q2 * n + n + 1), lambda
            q3: q1.a[q1.i[q3]])))[1]
      END
    `,
  ),
  macro(
    'q_cseq(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(b) = 0 THEN true
        ELSE len(list_filter(range(1, len(a) - len(b) + 2), lambda q1: list_slice(a, q1, q1 + len(b) - 1) IS NOT
            DISTINCT FROM b)) > 0
      END
    `,
  ),
  macro(
    'q_acmp(a, b, r)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN list_filter(list_transform(list_zip(list_slice(a, 1, least(len(a), len(b))), list_slice(b, 1,
            least(len(a), len(b)))), lambda q1: CASE WHEN q1[1] IS NULL OR q1[2] IS NULL THEN 2 WHEN q1[1] <> q1[2]
            THEN 1 ELSE 0 END), lambda q2: q2 > 0)[1] = 2 THEN
            u_fail('NOT_SUPPORTED: ARRAY comparison not supported for arrays with null elements')
        ELSE r
      END
    `,
  ),
  macro(
    'q_aeq(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(a) <> len(b) THEN false
        ELSE q_all(list_transform(list_zip(a, b), lambda q1: q1[1] = q1[2]))
      END
    `,
  ),
  vectors('q_dot', 'list_dot_product'),
  vectors('q_euc', 'list_distance'),
  macro('q_known(a)', `list_transform(a, lambda q8: coalesce(q8, CAST(0 AS DOUBLE)))`),
  macro(
    'q_cos(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(a) <> len(b) THEN u_raise('INVALID_FUNCTION_ARGUMENT: The arguments must have the same length')
        WHEN list_position(a, NULL) IS NOT NULL OR list_position(b, NULL) IS NOT NULL THEN NULL
        WHEN list_dot_product(q_known(a), q_known(a)) = 0 OR list_dot_product(q_known(b), q_known(b)) = 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Vector magnitude cannot be zero')
        ELSE list_dot_product(q_known(a), q_known(b)) / sqrt(list_dot_product(q_known(a), q_known(a)) *
            list_dot_product(q_known(b), q_known(b)))
      END
    `,
  ),
  macro(
    'q_mget(m, k)',
    `
      CASE
        WHEN m IS NULL OR k IS NULL THEN NULL
        WHEN map_contains(m, k) THEN m[k]
        ELSE u_raise('INVALID_FUNCTION_ARGUMENT: Key not present in map: ' || CAST(k AS VARCHAR))
      END
    `,
  ),
  macro(
    'q_mk(l)',
    `
      CASE
        WHEN len(list_filter(l, lambda q1: q1.k IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be null')
        WHEN len(list_distinct(list_transform(l, lambda q2: q2.k))) < len(l) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Duplicate map keys (' || CAST(l[q_repeated(list_transform(l,
            lambda q3: q3.k))].k AS VARCHAR) || ') are not allowed')
        ELSE map_from_entries(l)
      END
    `,
  ),
  macro(
    'q_map(ks, vs)',
    `
      CASE
        WHEN ks IS NULL OR vs IS NULL THEN NULL
        WHEN len(ks) <> len(vs) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Key and value arrays must be the same length')
        WHEN list_position(ks, NULL) IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be null')
        WHEN len(list_distinct(ks)) < len(ks) THEN u_raise('INVALID_FUNCTION_ARGUMENT: Duplicate map keys (' ||
            CAST(ks[q_repeated(ks)] AS VARCHAR) || ') are not allowed')
        ELSE map(ks, vs)
      END
    `,
  ),
  macro(
    'q_mk_keyed(l)',
    `
      CASE
        WHEN len(list_filter(l, lambda q1: q1.k IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be null')
        WHEN len(list_distinct(list_transform(l, lambda q2: q2.q))) < len(l) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Duplicate map keys are not allowed')
        ELSE map_from_entries(list_transform(l, lambda q3: {'k': q3.k, 'v': q3.v}))
      END
    `,
  ),
  macro(
    'q_entries(l)',
    `
      CASE
        WHEN len(list_filter(l, lambda q0: q0 IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map entry cannot be null')
        WHEN len(list_filter(l, lambda q0: q0.f0 IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be null')
        ELSE l
      END
    `,
  ),
  macro(
    'q_array_intersect(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(a) < len(b) THEN q_among(b, a, true)
        ELSE q_among(a, b, true)
      END
    `,
  ),
  macro(
    'q_array_except(a, b)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(b) = 0 THEN a
        ELSE q_among(a, b, false)
      END
    `,
  ),
  floatingExtremum('max'),
  floatingExtremum('min'),
  macro(
    'q_sequence_days(a, b, i)',
    `
      CASE
        WHEN i % 86400000 <> 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: sequence step must be a day interval if start and end values are dates')
        ELSE list_transform(q_sequence(CAST(a - DATE '1970-01-01' AS BIGINT), CAST(b - DATE '1970-01-01' AS BIGINT),
            i // 86400000), lambda q3: DATE '1970-01-01' + CAST(q3 AS INTEGER))
      END
    `,
  ),
  macro(
    'q_sequence_millis(a, b, i)',
    `list_transform(q_sequence(epoch_us(a), epoch_us(b), i * 1000), lambda q3: make_timestamp(q3))`,
  ),
  macro(
    'q_sequence_months(a, b, i)',
    `
      CASE
        WHEN a IS NULL OR b IS NULL OR i IS NULL THEN NULL
        WHEN i = 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: step must not be zero')
        WHEN (i > 0 AND b < a) OR (i < 0 AND b > a) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: sequence stop value should be greater than or equal to start value if step is greater than zero otherwise stop should be less than or equal to start')
        WHEN abs(date_sub('month', a, b)) // abs(i) >= 10000 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: result of sequence function must not have more than 10000 entries')
        ELSE list_filter(list_transform(range(0, abs(date_sub('month', a, b)) // abs(i) + 2), lambda q3: a +
            to_months(CAST(q3 * i AS INTEGER))), lambda q4: CASE WHEN i > 0 THEN q4 <= b ELSE q4 >= b END)
      END
    `,
  ),
  macro(
    'q_multimap_from_entries(l)',
    `
      CASE
        WHEN l IS NULL THEN NULL
        WHEN len(list_filter(l, lambda q0: q0 IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map entry cannot be null')
        WHEN len(list_filter(l, lambda q0: q0.f0 IS NULL)) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be null')
        ELSE q_multimap(list_transform(l, lambda q1: {'k': q1.f0, 'v': q1.f1}))
      END
    `,
  ),
  // A NULL value makes the sum NULL.
  macro(
    'q_map_norm(m)',
    `sqrt(list_reduce(list_transform(map_values(m), lambda q5: q5 * q5), lambda q7, q8: q7 + q8, CAST(0 AS DOUBLE)))`,
  ),
  macro(
    'q_map_cosine(a, b)',
    `
      coalesce(list_sum(list_transform(map_keys(a), lambda q6: a[q6] * b[q6])), 0) / (q_map_norm(a) * q_map_norm(b))
    `,
  ),
]
