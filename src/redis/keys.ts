/**
 * Every key and channel of the gateway in Redis. Braces mark the hash slot. Keys that one script
 * uses share a slot, and on a Redis Cluster each upstream has its own slot. Each comment names the
 * type and the content of a key, and when the key expires.
 */

const PREFIX = 'agw'

/** BullMQ keeps the queue of a lane under `<prefix>:<lane>:…` as long as the lane is used. */
export const laneKeys = {
  prefix: (lane: string): string => `${PREFIX}:{lane:${lane}}`,
}

/** Names of the keys of a partition of stored answers, in the order in which scripts take them. */
const PARTITION_KEYS = {
  /** Sorted set: keys of the stored answers by their end. Does not expire. */
  index: 'cache-index',
  /** Hash: bytes and owner of each of these answers, and the bytes of all. Does not expire. */
  sizes: 'cache-sizes',
  /** Sorted set: owners of these answers by their bytes. Does not expire. */
  owners: 'cache-owners',
  /** Sorted set: these answers by owner, and by end for each owner. Does not expire. */
  owned: 'cache-owned',
}

/** Keys of one upstream. */
export const upstreamKeys = {
  /** The BullMQ queue of each upstream, in versions before lanes. @until 0.4.0 */
  earlierQueuePrefix: (slug: string): string => `${PREFIX}:{${slug}}`,
  /** Hash: counts, score, state, breaker and last failure of the upstream. Does not expire. */
  health: (slug: string): string => `${PREFIX}:{${slug}}:health`,
  /**
   * Stream: changes of state that are not in Postgres yet, about 1 000 at most. Does not expire.
   */
  healthChanges: (slug: string): string => `${PREFIX}:{${slug}}:health:changes`,
  /**
   * Sorted set: callers who are limited alone, by when they may send again: accounts whose
   * undeclared parameters met a limit of the upstream, and `plain` with an account whose reports of
   * a limit do not count; 1 000 at most. Expires after 1 h. A probe that succeeds, or meets a limit
   * too, deletes it.
   */
  limitedCallers: (slug: string): string => `${PREFIX}:{${slug}}:limited-callers`,
  /**
   * Sorted set: callers (`voterOf`) whose requests met a limit of the upstream, by when the first
   * did; 1 000 at most. Expires after 1 h. A probe that meets a limit too leaves only `probe`, by
   * when it did.
   */
  limitReports: (slug: string): string => `${PREFIX}:{${slug}}:limit-reports`,
  /** String: outcome of a probe that an operator started. Expires after 60 s. */
  probeOutcome: (slug: string, id: string): string => `${PREFIX}:{${slug}}:probe-outcome:${id}`,
  /**
   * String: a stored answer. Expires when the answer is too old to be served under any condition.
   */
  cacheEntry: (slug: string, hash: string): string => `${PREFIX}:{${slug}}:cache:${hash}`,
  /** Keys of one partition of stored answers, in the order of `PARTITION_KEYS`. */
  partition: (slug: string, partition: string): string[] =>
    Object.values(PARTITION_KEYS).map((name) => `${PREFIX}:{${slug}}:${name}:${partition}`),
  /**
   * String: member of the wait queue whose answer identical calls share. Expires at the deadline of
   * that member's call.
   */
  coalesced: (slug: string, hash: string): string => `${PREFIX}:{${slug}}:coalesced:${hash}`,
  /**
   * String: token of the request that fetches an answer for identical calls. Expires after 3 s
   * unless the worker renews it.
   */
  leader: (slug: string, hash: string): string => `${PREFIX}:{${slug}}:leader:${hash}`,
  /**
   * List: items fetched ahead. The upstream's file sets when the list and its mark `:unfillable`
   * expire. The mark `:filling` expires after 6 s unless the worker renews it.
   */
  pool: (slug: string, key: string): string => `${PREFIX}:{${slug}}:pool:${key}`,
}

/** Names of a cap's keys, in the order in which scripts take them. */
const CAP_KEYS = {
  /**
   * Hash: virtual time, and for each share the number of queued calls and the start of its next
   * call.
   */
  fair: 'fair',
  /** Sorted set: admitted calls without a permit, by fair tag. */
  queue: 'queue',
  /** Sorted set: the same calls by deadline. */
  queueDeadlines: 'queue-deadlines',
  /** Sorted set: waiters whose worker polls for a permit right now, by fair tag. */
  waiters: 'waiters',
  /** Sorted set: the same waiters, by when they expire unless their worker polls again. */
  waiterExpiries: 'waiter-expiries',
  /**
   * Sorted set: calls that can no longer get a permit in time, by when to try again. They stay
   * until their workers know it. Expires after 15 min.
   */
  evicted: 'evicted',
  /** Sorted set: permits of the longest window by when they were granted. */
  log: 'log',
  /** Sorted set: permits whose request is in flight, by when their lease ends. */
  leases: 'leases',
  /**
   * Hash: since when Redis knows the cap, what the upstream says about its limiter, mean service
   * time.
   */
  state: 'state',
  /**
   * Sorted set: shares (accounts or groups of accounts) by when they last had demand for the cap.
   * Expires after 5 min.
   */
  demand: 'demand',
}

export type CapKeyName = keyof typeof CAP_KEYS

/** The keys of a cap. They expire a day after the longest window of the cap. */
export const capKeys = {
  prefix: (slug: string, bucket: string): string => `${PREFIX}:{${slug}}:cap:${bucket}:`,
  of: (slug: string, bucket: string, name: CapKeyName): string => capKeys.prefix(slug, bucket) + CAP_KEYS[name],
  all: (slug: string, bucket: string): string[] =>
    Object.values(CAP_KEYS).map((name) => capKeys.prefix(slug, bucket) + name),
  /**
   * String: id of the last poll of a worker that brought something, and the reply to that poll.
   * Expires after 15 min.
   */
  poll: (slug: string, bucket: string, worker: string): string => `${capKeys.prefix(slug, bucket)}poll:${worker}`,
}

/** Keys of one account. */
export const accountKeys = {
  /** String: version of the account's rights. Expires after 1 day. */
  version: (accountId: string): string => `${PREFIX}:{a:${accountId}}:version`,
  /** Sorted set: calls admitted in the last minute, by microsecond. Expires after 2 to 4 min. */
  minute: (accountId: string, mode: 'live' | 'test'): string => `${PREFIX}:{a:${accountId}}:${mode}:minute`,
  /** Sorted set: calls in flight, by when their lease ends. Expires after 15 to 30 min. */
  inFlight: (accountId: string, mode: 'live' | 'test'): string => `${PREFIX}:{a:${accountId}}:${mode}:inflight`,
  /**
   * Sorted set: calls in flight that take longer than a second, by when they are expected to end. A
   * call that ends earlier stays in the set. Expires after 15 min.
   */
  expectedEnds: (accountId: string, mode: 'live' | 'test'): string => `${PREFIX}:{a:${accountId}}:${mode}:ends`,
  /** String: calls charged to a month, `2026-11`. Expires a day after the month. */
  month: (accountId: string, month: string): string => `${PREFIX}:{a:${accountId}}:month:${month}`,
  /**
   * Sorted set: calls of the last minute with a credential that has limits, by microsecond. Expires
   * after 2 to 4 min.
   */
  credentialMinute: (accountId: string, mode: 'live' | 'test', credentialId: string): string =>
    `${PREFIX}:{a:${accountId}}:${mode}:credential:${credentialId}:minute`,
  /**
   * Sorted set: calls in flight with a credential that has limits, by when their lease ends.
   * Expires after 15 to 30 min.
   */
  credentialInFlight: (accountId: string, mode: 'live' | 'test', credentialId: string): string =>
    `${PREFIX}:{a:${accountId}}:${mode}:credential:${credentialId}:inflight`,
  /**
   * String: calls of a month with a key or a connection that has limits. Expires a day after the
   * month.
   */
  credentialMonth: (accountId: string, credentialId: string, month: string): string =>
    `${PREFIX}:{a:${accountId}}:connection:${credentialId}:${month}`,
  /**
   * String: record of an asynchronous call, to find and cancel it. Expires with the result of the
   * call; without a result, 15 min after the deadline of the call.
   */
  call: (accountId: string, callId: string): string => `${PREFIX}:{a:${accountId}}:call:${callId}`,
  /** String: a worker has started the asynchronous call. Expires after 15 min. */
  started: (accountId: string, callId: string): string => `${PREFIX}:{a:${accountId}}:started:${callId}`,
  /** String: the asynchronous call was counted as ended. Expires after 1 h. */
  ended: (accountId: string, callId: string): string => `${PREFIX}:{a:${accountId}}:ended:${callId}`,
  /** String: result of an asynchronous call. Expires after 15 min. */
  result: (accountId: string, callId: string): string => `${PREFIX}:{a:${accountId}}:result:${callId}`,
  /**
   * Sorted set: size and id of each stored result, by when the result expires. Expires after 15
   * min.
   */
  results: (accountId: string): string => `${PREFIX}:{a:${accountId}}:results`,
  /** String: total bytes of the stored results. Expires after 15 min. */
  resultBytes: (accountId: string): string => `${PREFIX}:{a:${accountId}}:result-bytes`,
  /** String: body of a reply that is too large for the stream. Expires after 60 s. */
  body: (accountId: string, callId: string): string => `${PREFIX}:{a:${accountId}}:body:${callId}`,
  /**
   * Sorted set: size and id of each of these bodies, by when the body expires. Expires after 60 s.
   */
  bodies: (accountId: string): string => `${PREFIX}:{a:${accountId}}:bodies`,
}

/**
 * Keys of one call in the earlier version. During an upgrade its processes run beside ours.
 * @until 0.4.0
 */
export const earlierCallKeys = {
  /** String: record of an asynchronous call. Expires 15 min after the deadline of the call. */
  call: (callId: string): string => `${PREFIX}:{${callId}}:call`,
  /** String: result of an asynchronous call. Expires after 15 min. */
  result: (callId: string): string => `${PREFIX}:{${callId}}:result`,
}

/** Keys of the whole installation. */
export const keys = {
  /** Stream: replies to one API node. Expires 120 s after the node has ended. */
  replies: (node: string): string => `${PREFIX}:{reply-${node}}`,
  /**
   * Sorted set: units of a throttle that a client used, by millisecond. Expires after the
   * throttle's window.
   */
  throttle: (name: string, subject: string): string => `${PREFIX}:{throttle:${name}:${subject}}`,
  /** String: an unfinished sign-in, sealed. Expires after 30 min. */
  signIn: (hash: string): string => `${PREFIX}:{sign-ins}:${hash}`,
  /**
   * Sorted set: keys of the sign-ins that a client began, by time. Expires 30 min after the
   * client's last sign-in began.
   */
  signInsOf: (client: string): string => `${PREFIX}:{sign-ins}:of:${client}`,
  /**
   * Sorted set: keys of the sign-ins that all clients began, by time. Expires 30 min after the last
   * sign-in began.
   */
  allSignIns: `${PREFIX}:{sign-ins}:all`,
  /**
   * Hash: heartbeats of all processes. Does not expire; readers delete the heartbeats of dead
   * processes.
   */
  processes: `${PREFIX}:{processes}`,
  /**
   * String: the APIs that processes have loaded, by the digest of the list. Expires after 10 min;
   * processes write it again each minute.
   */
  apis: (digest: string): string => `${PREFIX}:{processes}:apis:${digest}`,
  /** Hash: counts of the whole fleet for ten seconds. Expires after 65 min. */
  slotStats: (slot: number): string => `${PREFIX}:{stats}:slot:${slot}`,
  /** Hash: counts of the whole fleet for a quarter of an hour. Expires after 25 h. */
  quarterStats: (quarter: number): string => `${PREFIX}:{stats}:quarter:${quarter}`,
  /**
   * Sorted set: calls of one minute by account and status, the most frequent 300. Expires after 2
   * h.
   */
  minuteAccounts: (minute: number): string => `${PREFIX}:{stats}:${minute}:accounts`,
  /** Hash: digests of the addresses under which workers call each source. Does not expire. */
  sourceAddresses: `${PREFIX}:{source-addresses}`,
  /** String: version of the operators' settings of upstreams. Does not expire. */
  settingsVersion: `${PREFIX}:{upstream-settings}:version`,
  /**
   * String: a notice of the operator for all visitors of the pages. Expires at the end that the
   * notice names.
   */
  operatorNotice: `${PREFIX}:{upstream-settings}:notice`,
  /**
   * String: a log-in to the console, by a keyed digest of its id. Expires after 12 h. A log-out
   * deletes it.
   */
  consoleSession: (digest: string): string => `${PREFIX}:{console}:session:${digest}`,
  /** String: since when Redis has kept its data; 0 if it never lost data. Does not expire. */
  rememberedSince: `${PREFIX}:{memory}`,
  /** Hash: usage that is not in Postgres yet. Does not expire. */
  usagePending: `${PREFIX}:{usage}:pending`,
  /**
   * String: how many running tools of MCP clients a notification that cancels a request can mean.
   * Expires after 10 s.
   */
  cancellable: (notification: string): string => `${PREFIX}:{cancellable:${notification}}`,
  /** String: usage with this id was counted. Expires after 5 min. */
  usageWritten: (id: string): string => `${PREFIX}:{usage}:written:${id}`,
  /** Set: ids of batches of usage that are being written to Postgres. Does not expire. */
  usageBatches: `${PREFIX}:{usage}:batches`,
  /** Hash: a batch of usage. The node deletes the batch when it is in Postgres. */
  usageBatch: (id: string): string => `${PREFIX}:{usage}:batch:${id}`,
  /**
   * String: since when Postgres does not accept usage, in Redis' time. Expires 8 s after the last
   * failure.
   */
  usageFailing: `${PREFIX}:{usage}:failing`,
  /** String: a node writes usage to Postgres. Expires after 0.9 s. */
  usageLease: `${PREFIX}:{usage}:lease`,
}

/** Publish/subscribe channels. */
export const channels = {
  /** `<slug, or *> <call id>`: nobody waits for the call now, so the worker can stop it. */
  cancel: `${PREFIX}:cancel`,
  /** `<digest of sender and request id> <notification>`: an MCP client cancelled its request. */
  cancelRequest: `${PREFIX}:cancel-request`,
  /** `<cap's state key> <waiter>`: a permit may be free for the waiter. */
  wakeUp: `${PREFIX}:wake-up`,
  /** `<slug>`: the upstream's state changed. */
  health: `${PREFIX}:health`,
}
