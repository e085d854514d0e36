import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, glob, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startPostgres } from '../../src/local/embedded/postgres.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'

/**
 * `npm run test:mutations [word]`: applies each mutation to its Lua script, in a copy of the
 * project, and reports which test caught the mutation. It ends with 1 if no test caught a mutation.
 * With a word it runs only the mutations whose file or name contains the word. A run of all
 * mutations in which each was caught writes `mutations.md` beside this file.
 */

interface Mutation {
  name: string
  file: string
  from: string
  to: string
  tests: string[]
}

const testsOf = (names: string[]): string[] => names.map((name) => `test/${name}.test.ts`)

/** Mutations of the scripts in a folder, which these tests must catch. */
const inFolder =
  (folder: string, ...tests: string[]) =>
  (file: string, name: string, from: string, to = ''): Mutation => ({
    ...{ name, from, to },
    file: `${folder}/${file}.lua`,
    tests: testsOf(tests),
  })

/** Mutations of one script. */
const inFile =
  (file: string, ...tests: string[]) =>
  (name: string, from: string, to = ''): Mutation => ({
    ...{ name, from, to },
    file: `${file}.lua`,
    tests: testsOf(tests),
  })

const caps = inFolder('src/caps/lua', 'caps/shares', 'caps/model')
const lost = inFolder('src/caps/lua', 'caps/lost-memory')
const sentAgain = inFile('src/caps/lua/acquire', 'workers/permit-clients')
const ends = inFile('src/caps/lua/release', 'workers/permit-clients')
const keptNames = inFile('src/caps/lua/acquire', 'caps/rules')
const ahead = inFile('src/caps/lua/acquire', 'caps/permits-ahead')
const late = inFile('src/caps/lua/acquire', 'caps/late-permits')
const wakeUp = inFolder('src/caps/lua', 'caps/wake-up')
const slots = inFile('src/caps/lua/include/slots', 'caps/read')
const rules = inFile('src/caps/lua/include/rules', 'caps/rules')
const half = inFile('src/caps/lua/include/plan', 'caps/rules')
const behind = inFile('src/caps/lua/include/plan', 'caps/model')
const keyLife = inFile('src/caps/lua/include/key-life', 'caps/key-life')
const joins = inFolder('src/caps/lua', 'caps/acquire-joins')
const keys = inFile('src/caps/lua/include/keys', 'redis/script')
const read = inFile('src/caps/lua/read', 'caps/read')
const queuedSlot = inFile('src/caps/lua/include/queued-slot', 'caps/read')
const limits = inFolder('src/limits/lua', 'limits/model')
const batch = inFolder('src/limits/lua', 'limits/batch-limits')
const replies = inFolder('src/queue/lua', 'queue/reply')
const usage = inFolder('src/limits/lua', 'limits/usage-ledger', 'system/usage')
const login = inFile('src/throttles/lua/take-throttle', 'throttles/login-delay')
const health = inFolder('src/health/lua', 'health/health')
const members = inFile('src/health/lua/note-members', 'health/lacking-members')
const results = inFolder('src/queue/lua', 'queue/results')
const answers = inFile('src/cache/lua/store-answers', 'cache/response-cache')
const life = inFolder('src', 'redis/keys')
const clock = inFile('src/redis/lua/clock', 'redis/script')
const leads = inFile('workers/cache/lua/take-leads', 'workers/request-coalescer')
const lock = inFile('src/redis/lua/extend-lock', 'workers/item-pool', 'workers/request-coalescer')
const pool = inFile('workers/upstream/lua/take-prefetched', 'workers/item-pool')
const marker = inFile('workers/queue/lua/clear-marker', 'workers/queue-worker')
const setBack = inFolder('src', 'caps/set-back')
const expectedEnds = inFolder('src/limits/lua', 'limits/expected-ends')
const clockBack = inFile('src/limits/lua/acquire', 'limits/account-limits')
const throttle = inFile('src/throttles/lua/take-throttle', 'limits/model')
const throttleSetBack = inFile('src/throttles/lua/take-throttle', 'limits/account-limits')
const filled = inFile('workers/upstream/lua/store-prefetched', 'workers/item-pool')
const signIns = inFile('src/oauth/lua/keep-sign-in', 'oauth/sign-in-adapter')
const counts = inFile('src/telemetry/lua/add-counts', 'telemetry/minute-stats')
const beat = inFile('src/telemetry/lua/write-beat', 'telemetry/heartbeat')

export const MUTATIONS: Mutation[] = [
  caps('include/plan', 'a window admits one more', 'planned.count - max\n', 'planned.count - max - 1\n'),
  caps('include/slots', 'a window is 100 ms too short', 'now - rule.window)', 'now - rule.window + 100)'),
  caps('include/plan', 'a share is one more than half', 'math.floor(mayHold / 2))', 'math.floor(mayHold / 2) + 1)'),
  caps('include/plan', 'shares bind nobody', 'othersAt + demandLasts >= now', 'false'),
  caps(
    'include/plan',
    'nothing is kept for newcomers',
    'hasKept and math.floor(mayHold * KEPT_PART) or 0',
    'hasKept and 0 * KEPT_PART or 0',
  ),
  caps('include/plan', 'others never count as quiet', 'tonumber(askers[index + 1]), ', 'now, '),
  caps('include/plan', 'nothing is kept of a window that a network alone asks for', 'isOfNetwork(share) or ', ''),
  caps('include/plan', 'a /48 may have half', "level == 1 and '^group:q' or '/q[^/]*$'", "'no quarter'"),
  caps(
    'include/plan',
    'a quarter is a quarter of what a wider network may have',
    'math.floor(rule.max / 4)',
    'math.floor(mayHold / 4)',
  ),
  caps(
    'include/plan',
    'a wider network that has had much is new',
    'for inner = level, #path do',
    'for inner = #path, #path do',
  ),
  caps('include/plan', 'a network that has had some is new', 'inner == #path and 1 or ', ''),
  caps(
    'include/plan',
    'a wider network keeps nothing for networks in it',
    'if latest then closedUntil',
    'if latest and not bound.around then closedUntil',
  ),
  caps('include/plan', 'what a wider network may hold bounds no network in it', '      mayHold = most\n'),
  caps('include/plan', 'the demand of a network is the demand of a network beside it', '        around = group\n'),
  caps('include/plan', 'a share opens no sooner when others are quiet', 'boundAt > 0 and known.quietAt > 0', 'false'),
  caps('include/plan', 'what the upstream has left is ignored', 'planned.count >= state.left', 'false'),
  caps('include/plan', 'a close is ignored', 'local at = math.max(now, state.closed)', 'local at = now'),
  caps('include/state', 'a cold start is not held', 'if (state.initialisedAt or 0) == 0', 'if true'),
  caps('acquire', 'the greatest tag goes first', "redis.call('ZRANGE', WAITERS", "redis.call('ZREVRANGE', WAITERS"),
  caps(
    'include/join',
    'a call waits for the share of a call that is queued for the same answer',
    'if other == identical and at <= (slot or at) then',
    'if other == identical then',
  ),
  caps(
    'include/join',
    'a call in a long queue waits in the place of a later call for the same answer',
    'if at <= slot then shareSlot',
    'if true then shareSlot',
  ),
  caps('include/join', 'plans weigh nothing', 'COST / weight', 'COST'),
  caps('include/schedule', 'asynchronous calls leave no room', 'not lastWasAsync and ', ''),
  caps(
    'include/dequeue',
    'deadlines of calls that left the queue stay',
    "  redis.call('ZREM', QUEUE_DEADLINES, unpack(members))\n",
  ),
  caps('include/dequeue', 'the count of a share stays when its calls have left', '-number)', '0)'),
  caps(
    'include/dequeue',
    'the count of asynchronous calls stays when they have left',
    "'async', -async)",
    "'async', 0)",
  ),
  caps('include/evict', 'an evicted call stays in the queue', '  dequeue(members)\n'),
  caps('include/evict', 'an evicted call gets no refusal', "  redis.call('ZADD', EVICTED, unpack(evicted))\n"),
  caps('include/evict', 'an eviction for the share names the cap', 'isShareBound and -retryAt or retryAt', 'retryAt'),
  caps('acquire', 'an eviction for the cap names the share', "at < 0 and 'share'", "'share'"),
  caps(
    'include/join',
    'a shared slot for which its share waits names the cap',
    'isShareBound and shareOf(identical) == call.share',
    'false',
  ),
  caps('include/evict', 'no call is ever too late', 'return at > now and', 'return false and'),
  caps('include/join', 'a newcomer takes quoted slots', '  evict(late)\n'),
  caps(
    'include/join',
    'calls that cannot be in time are queued',
    'return at > now and not isAnsweredInTime(at, deadline) end',
    'return false end',
  ),
  caps('include/forecast', 'calls of equal start change places', 'whole + seq', 'whole + 0 * seq'),
  caps('include/join', 'demand is not noted', "  redis.call('ZADD', DEMAND, score(now), share)\n"),
  joins(
    'include/join',
    'a call that comes again is queued again',
    'if knownRank then return knownPlace(member, knownRank) end',
  ),
  caps('acquire', 'granted calls stay among the waiters', "  redis.call('ZREM', WAITERS, unpack(granted))\n"),
  caps('acquire', 'grants are not logged', "  redis.call('ZADD', LOG, unpack(logged))\n"),
  caps('acquire', 'grants of scarce caps are logged without their accounts', 'isScarce or widest', 'widest'),
  keptNames('grants that may count for shares later are logged without accounts', ' or widest > KEPT_WINDOW_MS_MIN'),
  ahead('permits ahead are granted under long windows', 'widest > KEPT_WINDOW_MS_MIN or queued', 'queued'),
  ahead('permits ahead are granted while calls wait', 'or queued > 0 or state', 'or state'),
  ahead(
    'permits ahead are granted of what an upstream has left',
    ' or state.leftUntil > now then return',
    ' then return',
  ),
  ahead('permits ahead take all that is left', 'left / AHEAD_PART', 'left + 0 * AHEAD_PART'),
  ahead('permits ahead count as room', 'reply[ROOM] = left - ahead', 'reply[ROOM] = left'),
  ahead('permits ahead are not counted', '#granted + (ahead or 0)', '#granted'),
  late('a permit that may be used later counts from its grant', 'score(now + logLaterMs)', 'score(now)'),
  sentAgain(
    'a poll that is sent again is granted again',
    "redis.call('SET', LAST_REPLY, poll ..",
    "redis.call('SET', LAST_REPLY, 'x' .. poll ..",
  ),
  caps('acquire', 'leases are not kept', "  redis.call('ZADD', LEASES, unpack(leased))\n"),
  caps('acquire', 'concurrency is not checked', '  if freeLeases <= 0 then return nil end\n'),
  {
    name: 'a queued call whose slot was taken gets no refusal',
    file: 'src/caps/lua/acquire.lua',
    from: 'if (isScarce or state.leftUntil > now) and waitMs > 0 then',
    to: 'if false then',
    tests: ['test/caps/model.test.ts'],
  },
  joins(
    'acquire',
    'calls without a place take the room of queued calls',
    'isRoomFor(queued + #unplaced)',
    'isRoomFor(#waiters)',
  ),
  caps('acquire', 'the room of queued calls counts as room', 'free - queued - #unplaced', 'free - #waiters'),
  joins('acquire', 'a call without a place never passes', 'isRoomFor(queued + #unplaced) or ', ''),
  joins(
    'acquire',
    'a call without a place is granted before calls that wait',
    "'EXISTS', WAITERS, EVICTED) == 0",
    "'EXISTS', WAITERS, EVICTED) >= 0",
  ),
  caps(
    'acquire',
    'a refused call stays among the waiters',
    "    redis.call('ZREM', WAITERS, member)\n    redis.call('ZREM', WAITER_EXPIRIES, member)\n",
  ),
  joins('acquire', 'a call waits for a place that another call took', '  placed = refuseEvicted(placed)\n'),
  joins('include/join', 'a repeat loses its order', 'if call.tag then\n    local tag', 'if false then\n    local tag'),
  joins(
    'include/join',
    'a repeat waits for virtual time that began anew',
    'call.tag < queue.virtual and call.tag or queue.virtual - 1 + call.tag % 1',
    'call.tag',
  ),
  joins('include/join', 'a full queue refuses a repeat', 'if isFull and not call.tag then', 'if isFull then'),
  joins('include/join', 'a call that sends a request follows one that is gone', ' and not call.waits then', ' then'),
  joins(
    'include/join',
    'a waiter in the place of another has an order of its own',
    "call.waits and redis.call('ZSCORE', QUEUE, identical) or tagText",
    'tagText',
  ),
  caps(
    'include/release-permits',
    'leases are never released',
    "  local ended = redis.call('ZREM', LEASES, unpack(permits))\n  if ended == 0",
    '  local ended = #permits\n  if ended == 0',
  ),
  caps(
    'include/release-permits',
    'a release that is sent again teaches again',
    '  if ended == 0 then return end\n',
    '  ended = #permits\n',
  ),
  wakeUp(
    'include/release-permits',
    'an unused permit keeps its lease',
    "  redis.call('ZREM', LOG, unpack(permits))\n  local ended = redis.call('ZREM', LEASES, unpack(permits))",
    "  redis.call('ZREM', LOG, unpack(permits))\n  local ended = 0",
  ),
  caps('include/release-permits', 'an unused permit counts as used', "  redis.call('ZREM', LOG, unpack(permits))\n"),
  ahead('a poll takes back no unused permits', 'state.left + takeBackPermits(unused)', 'state.left'),
  ahead(
    'a permit that is taken back is not left again',
    'state.left + takeBackPermits(unused)',
    'takeBackPermits(unused) * 0 + state.left',
  ),
  caps('leave-queue', 'a call that left is still a waiter', "redis.call('ZREM', WAITERS, member) == 1", 'true'),
  wakeUp('leave-queue', 'a call that left wakes nobody', 'if wasWaiting then notifyFirst(1) end\n'),
  wakeUp('leave-queue', 'a call that did not wait wakes others', 'if wasWaiting then', 'if true then'),
  caps('leave-queue', 'a call that left stays in the queue', 'dequeue({member})\n'),
  caps('leave-queue', 'a call that left stays with the networks around its own', 'start - cost', 'start'),
  caps(
    'include/join',
    'networks around a share hold none of its calls back',
    'math.max(unpack(queue.starts))',
    'queue.starts[#path]',
  ),
  caps('renew', 'a lease is not extended', 'now + tonumber(ARGV[2])', 'now'),
  caps('renew', 'a lease that has ended begins again', "'XX', ", ''),
  caps('apply-upstream-limit', 'all calls go at once after a close', "'ramp', 1,", "'ramp', 64,"),
  caps('apply-upstream-limit', 'a close evicts nobody', '> 0 then evictTooLate() end', '< 0 then evictTooLate() end'),
  {
    name: 'all calls go at once when a breaker closes',
    from: "'ramp', 1,",
    to: "'ramp', 64,",
    tests: ['test/workers/permit-clients.test.ts'],
    file: 'src/caps/lua/begin-gradually.lua',
  },
  limits(
    'acquire',
    'the minute admits one more',
    'limits.perMinute - limits.inMinute)',
    'limits.perMinute - limits.inMinute + 1)',
  ),
  limits(
    'acquire',
    'one more may be in flight',
    'count or limits.inFlightMax - limits.inFlight)',
    'count or limits.inFlightMax - limits.inFlight + 1)',
  ),
  limits(
    'acquire',
    'the month admits one more',
    'limits.perMonth - limits.inMonth)',
    'limits.perMonth - limits.inMonth + 1)',
  ),
  limits('acquire', 'a credential refuses after its account', '{credential, account} or', '{account, credential} or'),
  limits(
    'acquire',
    'a limit that was lowered refuses before the first limit',
    'math.max(0, left) < granted',
    'left < granted',
  ),
  limits(
    'acquire',
    'a minute is a millisecond too short',
    'nowMicros - MINUTE_MICROS)',
    'nowMicros - MINUTE_MICROS + 1000)',
  ),
  limits('acquire', 'the month is not counted', "redis.call('INCRBY', limits.month, granted)"),
  limits('acquire', 'a credential has no limits', 'credential and {credential, account} or {account}', '{account}'),
  limits('acquire', 'leases never end', "redis.call('ZREMRANGEBYSCORE', limits.leases, '-inf', nowMs)\n"),
  limits('acquire', 'a lowered limit tells the wrong wait', 'isRefusing and surplus - 1 or 0', '0 or 0'),
  limits('acquire', 'a refusal does not wait for a month that refuses too', 'waitFor(monthEnd - nowMs)', 'waitFor(0)'),
  limits(
    'acquire',
    'each call that comes alone may wait for a lease',
    "take ~= 'each' and leasesLeft > 0",
    'leasesLeft > 0',
  ),
  limits('acquire', 'a batch of all takes what fits', "if take == 'all' and granted < count then granted = 0 end\n"),
  limits('acquire', 'every call of a batch has a lease', 'math.min(granted, leasesLeft)', 'granted'),
  batch('acquire', 'a batch of all waits until one call fits', "take == 'all' and count or 1", '1'),
  clockBack(
    'a clock set back lengthens leases',
    "followSetBack(limits.leases, string.format('%.0f', nowMs + LEASE_MS_MAX))",
  ),
  limits('end', 'a call ends twice', 'if isFirstEnd then', 'if true then'),
  limits('end', 'an asynchronous call ends with its lease', 'if marker then', 'if false then'),
  limits('end', 'an asynchronous call ends twice', "'NX', 'PX', ENDED_MS", "'PX', ENDED_MS"),
  limits('end', 'a failed call is not refunded', '      giveBack(month)\n'),
  limits('end', 'a failed call is not refunded to its credential', 'giveBack(ofCredential)'),
  limits('end', 'a credential keeps the lease', "if itsLeases then redis.call('ZREM', itsLeases, callId) end\n"),
  limits('end', 'a refund leaves the minute of a credential', 'if itsLeases and costsNothing then', 'if false then'),
  batch(
    'end',
    'a credential gets no lease that is handed on',
    '    if itsLeases then addLease(itsLeases, callId) end\n',
  ),
  limits('end', 'a refund leaves the minute', "redis.call('ZREM', MINUTE, callId) == 1", 'false'),
  limits('end', 'a failed call gives back its minute', 'costsNothing and redis', 'redis'),
  limits('end', 'a call that waits for a lease gives nothing back', 'hadLease or hadUnit', 'hadLease'),
  limits('end', 'a lease goes on though it was over', 'if hadLease then handedOn', 'if true then handedOn'),
  batch('end', 'a lease that is handed on ends at once', 'math.floor(now) + leaseMs', 'math.floor(now) - 1'),
  limits(
    'end',
    'a call that costs its units keeps its lease',
    "redis.call('ZREM', IN_FLIGHT, unpack(",
    "redis.call('ZREM', MINUTE, unpack(",
  ),
  throttle('a throttle admits one more', 'surplus >= 0', 'surplus > 0'),
  throttle('a throttle forgets early', 'nowMs - windowMs)', 'nowMs - windowMs + 1)'),
  caps('release', 'a release ends no permit', 'releasePermits(used, meanMs)\n'),
  wakeUp('release', 'a release wakes nobody', 'notifyFirst(#used + #unused)', '0'),
  ends(
    'a release says that nobody waits',
    'math.min(1, notifyFirst(#used + #unused))',
    'notifyFirst(#used + #unused) * 0',
  ),
  caps(
    'include/dequeue-expired',
    'calls past their deadline stay in the queue',
    'and dequeue(expired) or 0',
    'and 0 or 0',
  ),
  lost('initialise', 'when Redis lost its memory is forgotten', "'initialisedAt', ARGV[2]", "'initialisedAt', 0"),
  lost('backfill', 'a minute of the past counts as one request', 'for number = 1, granted do', 'for number = 1, 1 do'),
  lost('backfill', 'the past that is put back stays for ever', 'keepAlive(true, {LOG, STATE})\n'),
  lost('backfill', 'the past is read again and again', "'backfilled', '1')", "'backfilled', '0')"),
  lost('backfill', 'a past that is put back evicts nobody', "if redis.call('ZCARD', QUEUE) > 0 then", 'if false then'),
  lost('join-queue', 'a call joins without the past that was lost', 'if needsBackfill() then', 'if false then'),
  lost(
    'include/lost-past',
    'the past is put back before Postgres has all of it',
    'initialisedAt + BACKFILL_AFTER_MS',
    'initialisedAt - BACKFILL_AFTER_MS',
  ),
  lost(
    'include/state',
    'the hold after a loss is a second too short',
    'COLD_START_HOLD_MS)\nend',
    'COLD_START_HOLD_MS) - 1000\nend',
  ),
  health('record-attempt', 'a breaker opens one failure late', '-run >= needed', '-run > needed'),
  health(
    'record-attempt',
    'a breaker opens right after a good attempt',
    "now - num('okAt') >= QUIET_MS_TO_OPEN",
    'now >= QUIET_MS_TO_OPEN',
  ),
  health(
    'record-attempt',
    'failures of one account open a breaker',
    'elseif isDue and isOwnFault then',
    'elseif isDue then',
  ),
  health('record-attempt', 'a caller has a vote for each failure', ' and not (isAdded and caller == account)'),
  health('record-attempt', 'votes are for ever', 'now - tonumber(at) < VOTE_MS and ', 'VOTE_MS and '),
  health(
    'record-attempt',
    'votes of before a good attempt open a breaker',
    "tonumber(string.match(voter, '@(.*)')) >= num('okAt')",
    'true',
  ),
  health('record-attempt', 'voters are kept without bound', '> VOTERS_MAX then', '> 2 * VOTERS_MAX then'),
  health('record-attempt', 'the failure of a probe opens no breaker', 'hasProbeFailed or votesInRow', 'votesInRow'),
  health(
    'record-attempt',
    'a probe that failed before a good attempt opens a breaker',
    'run < 0 and (h.rowPlain',
    '(h.rowPlain',
  ),
  health('record-attempt', 'failures of one account make an API Down', ' and not isDoubtful then', ' then'),
  health('record-attempt', 'a low score of one account is never looked into', 'or isDoubtful and', 'or false and'),
  health('record-attempt', 'a repeat counts for the score', 'if isFailure and not isRepeat then', 'if isFailure then'),
  health(
    'record-attempt',
    'a breaker closes one good attempt late',
    'good >= SUCCESSES_TO_CLOSE',
    'good > SUCCESSES_TO_CLOSE',
  ),
  health('record-attempt', 'pauses between half-open attempts stay the same', 'math.max(pause * 2,', 'math.max(pause,'),
  health('record-attempt', 'any attempt decides while a breaker is open', 'if holdsSlot and result', 'if result'),
  health('record-attempt', 'failures never decay', "num('fail') * factor", "num('fail')"),
  health('record-attempt', 'a good attempt ends no row of failures', 'run = math.max(run, 0)', 'run = run'),
  health(
    'record-attempt',
    'the failure of one endpoint to a probe ends no row of failures',
    "if result == 'ok' or result == 'endpoint-fail' then",
    "if result == 'ok' then",
  ),
  health('record-attempt', 'a change is not written down', "  redis.call('XADD'", "  redis.pcall('XADD-'"),
  health(
    'acquire-half-open-slot',
    'two attempts hold the slot',
    "'trialAt', text(now + leaseMs)",
    "'trialAt', text(now)",
  ),
  health(
    'acquire-half-open-slot',
    'the pause before a half-open attempt is skipped',
    'if waitMs > 0 then',
    'if waitMs > 500 then',
  ),
  health(
    'acquire-half-open-slot',
    'the lease of an attempt is quoted as the wait',
    'math.min(waitMs, HALF_OPEN_WAIT_MS)',
    'math.max(waitMs, HALF_OPEN_WAIT_MS)',
  ),
  health(
    'acquire-half-open-slot',
    'a slot is refused to the token that holds it',
    "  if holder == token then return {'slot', 0} end\n",
  ),
  members(
    'callers raise the alarm without a probe',
    "if source == 'probe' then",
    'if member.count >= LACKING_TO_PROBE then',
  ),
  members('a probe comes one answer late', 'member.count >= LACKING_TO_PROBE', 'member.count > LACKING_TO_PROBE'),
  members('a probe decides nothing', "if source == 'probe' then", 'if false then'),
  members(
    'answers lead to no probe',
    'member.probedAt, probedEndpoint, isMemberNews = now, endpoint, true',
    'member.probedAt = now',
  ),
  members('no member is ordinary', 'members[key] = { ordinary = now }\n  else', 'members[key] = nil\n  else'),
  members('a member is ordinary for good', ' > ORDINARY_MS then', ' > ORDINARY_MS * 1e6 then'),
  members('an alarm ends with a single answer', '>= GOOD_TO_RECOVER', '>= GOOD_TO_RECOVER - 2'),
  members(
    'an alarm goes on when members come and go',
    'members[key], isMemberNews = { ordinary = now }, true',
    'member.good = 0',
  ),
  health('acquire-half-open-slot', 'a closed breaker gives a slot', "if h.open ~= '1' then return {'closed', 0} end\n"),
  batch('end', 'a step of a batch does not say that the rights have changed', "redis.call('GET', VERSION) or ''", "''"),
  login('one more password may be wrong', 'surplus >= 0', 'surplus > 0'),
  login('the wait after a wrong password stays the same', '1000 * 2 ^ surplus', '1000'),
  login('the wait has no longest', 'waitMsMax) end', 'waitMsMax * 100) end'),
  login('the wait ends a millisecond early', 'endsAt > nowMs', 'endsAt > nowMs + 1'),
  login('the wait counts from the first wrong password', 'from, waitMs = -1,', 'from, waitMs = 0,'),
  login('wrong passwords are forgotten one by one', 'if waitMsMax == 0 then', 'if true then'),
  usage('record-usage', 'calls repeated under the same id count twice', "'NX', ", ''),
  usage(
    'seal-usage-batch',
    'pending counts stay pending',
    "redis.call('RENAME', PENDING, BATCH)",
    "redis.call('COPY', PENDING, BATCH)",
  ),
  usage('seal-usage-batch', 'a batch is not listed', "redis.call('SADD', BATCHES, id)\n"),
  results(
    'store-result',
    'a later outcome replaces the first',
    "if redis.call('EXISTS', RESULT) == 1 then return {'earlier', 0, 0} end\n",
  ),
  results('store-result', 'results have no bound', '+ size > bytesMax then', '+ size > bytesMax * 10 then'),
  results('store-result', 'results are not counted', "redis.call('INCRBY', TOTAL, size)\n"),
  results('store-result', 'it is not announced that a call has begun', "redis.call('EXISTS', STARTED)", '0'),
  results(
    'start-call',
    'a call that has an outcome begins',
    "if redis.call('EXISTS', RESULT) == 1 then return 0 end\n",
  ),
  results('start-call', 'it is not noted that a call begins', "redis.call('SET', STARTED, 1, 'PX', ARGV[1])\n"),
  replies('append-reply', 'a reply stream is kept for ever', "redis.call('EXPIRE', STREAM, seconds)\n"),
  results('record-call', 'calls are taken although no result fits', '>= bytesMax then', '> bytesMax then'),
  results(
    'include/results',
    'ended results keep their room',
    "redis.call('DECRBY', TOTAL, bytes)",
    "tonumber(redis.call('GET', TOTAL))",
  ),
  results('store-body', 'bodies have no bound', 'if #waiting > 0 and', 'if false and'),
  results('store-body', 'a large body never fits', 'if #waiting > 0 and', 'if'),
  results('store-body', 'a body that is written again counts twice', "redis.call('ZREM', INDEX, member)\n"),
  answers('answers have no room', 'if #evicted == 0 then break end', 'if true then break end'),
  answers('answers of others make way', "'ZREVRANGE', OWNERS, 0, 1", "'ZRANGE', OWNERS, 0, 1"),
  answers('an owner gives way until it has nothing', ' or taken > surplus then', ' then'),
  answers('an answer that is stored again counts twice', 'total - replace(kept)', 'total, replace(kept)'),
  answers('answers that are evicted still count', 'total - drop(evicted)', 'total - 0 * drop(evicted)'),
  answers('answers that have ended still count', 'dropEnded(now)\n    sweptAt', '0 * dropEnded(now)\n    sweptAt'),
  answers('the lead of another request ends', 'isHeld or holder == token', 'true'),
  answers('the lead of a request that stored its answer stays', 'isHeld and leader or coalesced', 'coalesced'),
  answers('an owner keeps what its answers took', "'ZINCRBY', OWNERS, -bytes", "'ZINCRBY', OWNERS, 0"),
  answers('answers are evicted that are gone', "  redis.call('ZREM', OWNED, unpack(members))\n"),
  answers('answers that have ended keep their room', '#ended > 0 and drop(ended) or 0', '0'),
  answers(
    'answers that have ended stay until their partition is full',
    'if sweptAt ~= second then',
    'if not sweptAt then',
  ),
  answers(
    'answers are evicted in place of answers that have ended',
    'if total > bytesMax then total = total - dropEnded(now) end\n',
  ),
  answers('answers that have ended are looked for once', 'endedLeft > 0 and second', 'second'),
  answers('an answer that cannot be stored fails the others', 'pcall(storeAndEndLead,', 'true, storeAndEndLead('),
  answers('the second of two answers takes the keys of the first', 'key, value = key + 5', 'key, value = key + 4'),
  leads('a lead that is taken is free', 'holder ~= token and', 'false and'),
  leads('a request follows itself', 'holder and holder ~= token', 'holder'),
  leads('every request overtakes', "ARGV[index + 1] == '1' and ", ''),
  leads('a request that was sent is overtaken', ' ~= BEGUN', " ~= BEGUN .. '!'"),
  leads(
    'a request that overtakes takes no lead',
    "redis.call('SET', leader, token, 'PX', LEADER_MS) end",
    'redis.call("TIME") end',
  ),
  leads('a leader looks for no answer', "redis.call('EXISTS', answer)", '0'),
  leads('a lead that overtakes another lasts for ever', "token, 'PX', LEADER_MS) end", 'token) end'),
  leads('a lead lasts for ever', "token, 'PX', LEADER_MS, 'NX'", "token, 'NX'"),
  answers(
    'answers of an earlier version keep their room',
    "if not isKnown then keys = redis.call('ZRANGE', INDEX, 0, EVICTED_MAX - 1) end\n",
  ),
  answers('answers of the smallest owner too', 'if owners[index] == largest then return {key} end', 'return {key}'),
  wakeUp(
    'include/notify',
    'nobody is woken up',
    "redis.call('PUBLISH', WAKE_UP_CHANNEL, STATE .. ' ' .. member) ",
    'return WAKE_UP_CHANNEL ',
  ),
  wakeUp('include/notify', 'a wake-up does not name the cap', "STATE .. ' ' .. member", 'member'),
  wakeUp('include/notify', 'the last waiter is woken up', "'ZRANGE'", "'ZREVRANGE'"),
  wakeUp('include/notify', 'one waiter too many is woken up', 'count - 1', 'count'),
  wakeUp('acquire', "workers of others' waiters are not woken up", 'else notifyWaiter(member) end', 'end'),
  wakeUp('acquire', 'a poll whose waiters are refused wakes nobody', 'if count > 0 then notifyFirst(count) end\n'),
  wakeUp('acquire', 'a poll wakes workers although there is no room', 'evictedCount, freeNow())', 'evictedCount)'),
  wakeUp('begin-gradually', 'a close is not forgotten', "'closed', 'left'", "'left'"),
  wakeUp('begin-gradually', 'a rest is not forgotten', "'leftUntil', ", ''),
  wakeUp('begin-gradually', 'a limit that is forgotten wakes nobody', '  notifyFirst(1)\n'),
  wakeUp(
    'include/evict',
    'the worker of an evicted call is not woken up',
    '  for _, member in ipairs(members) do notifyWaiter(member) end\n',
  ),
  keyLife('keys never end', "redis.call('PEXPIRE', key, widest + KEY_LIFE_MS)"),
  keyLife('keys end before their window does', 'key, widest + KEY_LIFE_MS', 'key, KEY_LIFE_MS'),
  keyLife('one of the keys ends alone', 'ipairs(keys)', 'ipairs({keys[1]})'),
  keyLife('the life of keys is never renewed', " and redis.call('PTTL', keys[1]) > widest + KEY_LIFE_MS / 2"),
  keyLife('the life of keys is renewed at each use', 'if not isFirst and', 'if isFirst == nil and'),
  {
    ...keyLife(
      'leases of a quiet cap never end',
      "redis.call('EXISTS', LOG, LEASES) < 2",
      "redis.call('EXISTS', LOG) < 1",
    ),
    file: 'src/caps/lua/acquire.lua',
  },
  {
    ...keyLife('a cap without a grant is kept for ever', 'if isNew == 1', 'if isNew > 1'),
    file: 'src/caps/lua/initialise.lua',
  },
  {
    ...keyLife('what an upstream says before any call stays for ever', 'if not permits then', 'if false then'),
    file: 'src/caps/lua/apply-upstream-limit.lua',
  },
  {
    ...keyLife('a state that begins gradually stays for ever', 'if not permits then', 'if false then'),
    file: 'src/caps/lua/begin-gradually.lua',
  },
  {
    ...keyLife('demand never ends', "redis.call('PEXPIRE', DEMAND, DEMAND_WINDOW_MS)\n"),
    file: 'src/caps/lua/include/join.lua',
  },
  rules('a rate of a hundred requests gives no shares', 'max > 1 and max <=', 'max > 1 and max <'),
  rules('the last rate alone makes a cap scarce', 'isScarce or max', 'max'),
  rules('the last rate alone gives shares', 'hasShares or rules', 'rules'),
  caps('include/rules', 'the last window counts as the widest', 'math.max(widest, window)', 'window'),
  rules('each account of a group counts for itself', "isScarce and '^[^|]*' or ", ''),
  caps('include/rules', 'accounts of a group count as one on every cap', " or '^(.*)|'"),
  half('a share is one less than half', 'math.floor(mayHold / 2))', 'math.floor(mayHold / 2) - 1)'),
  half('a share is the larger half', 'math.floor(mayHold / 2))', 'math.ceil(mayHold / 2))'),
  half('grants count for the wrong account', 'pathOf(shareOf(entries[index]))', 'pathOf(group)'),
  caps(
    'include/plan',
    'an account alone has half',
    'known.last == group and known.otherAt or ',
    'known.last == group and known.lastAt or ',
  ),
  caps('include/plan', 'planned grants count for no share', '      own.count = own.count + 1\n'),
  caps('include/plan', 'the last grant of the log counts for no share', 'rule.used) or', 'rule.used - 1) or'),
  behind('a grant behind others counts itself among them', 'planned.count = number - 1', 'planned.count = number'),
  behind('what is planned before a grant is forgotten after it', '      planned.count = behind\n'),
  behind(
    'grants behind others count for no share',
    'plannedOf[group] = planned end',
    'plannedOf[group] = plannedOf[group] end',
  ),
  behind(
    'a window that no share binds has no end',
    'rule.isShared and boundsOf(rule, share).quietAt > 0',
    'rule.isShared',
  ),
  behind('grants of the log leave room for those behind them', ' or planned.count < rule.max then', ' then'),
  caps(
    'include/queued-slot',
    'calls of its share that wait delay no call',
    'Behind(path[level], ownCounts[level])',
    'Behind(path[level], 0)',
  ),
  caps('include/schedule', 'a share that is open stays open', '      opensAt = {}\n'),
  caps('include/members', 'no call is asynchronous', "string.find(member, '|~', 1, true) ~= nil", 'false'),
  caps('include/members', 'every call is asynchronous', "string.find(member, '|~', 1, true) ~= nil", 'true'),
  caps('include/fair', 'calls of all accounts are one count', "'w:' .. share", "'w:'"),
  caps('include/fair', 'calls of all accounts start at one place', "'f:' .. share", "'f:'"),
  caps('include/fair', 'the count of a share is written over its start', "'w:' .. share", "'f:' .. share"),
  keys('the queue and its deadlines change places', 'QUEUE, QUEUE_DEADLINES', 'QUEUE_DEADLINES, QUEUE'),
  keys('the log and the leases change places', 'LOG, LEASES', 'LEASES, LOG'),
  clock('the clock of Redis counts whole seconds', ' + time[2] / 1000'),
  clock('a time that is handed in is ignored', 'local now = tonumber(ARGV[1])', 'local now = nil'),
  clock('times are rounded to fourteen digits', "string.format('%.3f', value)", 'tostring(value)'),
  read('the place of a call is counted from one', 'local ahead = rank or', 'local ahead = rank and rank + 1 or'),
  read('a call that is not queued comes first', 'and -1 or', 'and 0 or'),
  read('the slot is the slot of the next call', 'math.max(0, ahead)', 'math.max(0, ahead) + 1'),
  read('leases that have ended count', "redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))\n"),
  read('requests under way and free slots change places', 'leased, freeNow()', 'freeNow(), leased'),
  read('a call that would come now waits for no connection', 'congestionMs(leased, ahead)', '0'),
  read('a closed upstream limits nobody', 'math.max(state.closed,', 'math.max(0,'),
  read('an upstream that has none left limits nobody', 'state.left <= 0 and state.leftUntil or 0', '0'),
  read('what is used is called left', 'rule.max - usedOf(rule)', 'usedOf(rule)'),
  read('a call that shares an answer waits for nothing', 'if COALESCED and', 'if false and'),
  queuedSlot('a queued call is never planned', '<= PLANNED_LENGTH_MAX', '< -PLANNED_LENGTH_MAX'),
  queuedSlot('calls of its share delay no call of a long queue', '(counts[group] or 0) + 1', '0'),
  queuedSlot('a queued call waits for no connection', ", congestionMs(redis.call('ZCARD', LEASES), rank))", ')'),
  {
    ...queuedSlot('a call that comes again is quoted no wait', 'member), queuedWaitMs(member, rank)', 'member), 0'),
    file: 'src/caps/lua/include/join.lua',
  },
  caps('read', 'calls past their deadline count as before', 'dequeueExpired()\n'),
  slots('a closed upstream has free slots', 'if state.closed > now then return 0 end'),
  slots(
    'what the upstream has left binds no free slot',
    'if state.leftUntil > now then free = math.min(free, state.left) end',
  ),
  slots('every call has the slot of the first', 'local rank = ahead % rule.max', 'local rank = 0'),
  slots('calls of a later window come in the present window', ' + math.floor(ahead / rule.max) * rule.window'),
  health('read-health', 'fields are read by their values', 'h[flat[i]] = flat[i + 1]', 'h[flat[i + 1]] = flat[i]'),
  health('read-health', 'the first field is not read', 'for i = 1, #flat', 'for i = 3, #flat'),
  health(
    'read-health',
    'numbers are read without their fractions',
    'tonumber(h[name]) or 0',
    'math.floor(tonumber(h[name]) or 0)',
  ),
  health('read-health', 'times and counts lose digits', "string.format('%.17g', number)", 'tostring(number)'),
  health(
    'record-attempt',
    'a change is announced to nobody',
    "if to ~= from or isAnnounced then redis.call('PUBLISH'",
    "if false then redis.call('PUBLISH'",
  ),
  health(
    'record-attempt',
    'every attempt is announced',
    "if to ~= from or isAnnounced then redis.call('PUBLISH'",
    "if true then redis.call('PUBLISH'",
  ),
  health(
    'acquire-half-open-slot',
    'a caller whose calls failed long ago gets no slot',
    'if each == caller and now - tonumber(at) < VOTE_MS then',
    'if each == caller and VOTE_MS then',
  ),
  health(
    'acquire-half-open-slot',
    'a caller whose calls fail holds the slot',
    "then return {'probe', 0} end",
    'then end',
  ),
  health(
    'record-attempt',
    'a half-open attempt that said nothing is forgotten',
    "holdsSlot and result == 'none' and isOfCaller",
    'false',
  ),
  health(
    'acquire-half-open-slot',
    'a slot that is taken is announced to nobody',
    "redis.call('PUBLISH', HEALTH_CHANNEL, slug)",
    "redis.call('ECHO', HEALTH_CHANNEL .. slug)",
  ),
  pool('a pool gives the items that it has', "if redis.call('LLEN', POOL) < tonumber(count) then return {} end\n"),
  pool('a pool never gives its last item', "redis.call('LLEN', POOL) <", "redis.call('LLEN', POOL) <="),
  pool('items that are taken stay in the pool', "'LPOP', POOL, count", "'LRANGE', POOL, 0, count - 1"),
  pool('the items that came last go first', 'LPOP', 'RPOP'),
  marker('jobs that wait lose their marker', 'if waiting > 0 then return -waiting end\n'),
  marker('jobs with a priority lose their marker', " + redis.call('ZCARD', PRIORITIZED)"),
  marker('each job that waits is looked for on its own', 'return -waiting end', 'return -1 end'),
  marker('an empty queue wakes workers', "redis.call('ZREM', MARKER, '0')\n"),
  marker('nobody knows when the next delayed job is due', '[2] or 0)', '[3] or 0)'),
  filled('a pool never ends', "redis.call('EXPIRE', POOL, ARGV[1])\n"),
  lock('any process ends the lock of another process', 'if not isHeld then return 0 end\n'),
  lock('a lock is not extended', "redis.call('SET', LOCK, token, 'PX', lifeMs) end", 'local _ = token end'),
  lock('a lock is held by the first token alone', 'for index = 2, #ARGV do', 'for index = 2, 2 do'),
  lock('a lock that is released is extended', "if lifeMs == '0' then", 'if false then'),
  lock('the lock of a dead process never ends', ", 'PX', lifeMs"),
  expectedEnds(
    'acquire',
    'a refusal quotes the last end of a call',
    'soonest = math.min(soonest,',
    'soonest = math.max(0,',
  ),
  expectedEnds('acquire', 'a call without a note has no end', 'endsAt or nowMs', 'endsAt or math.huge'),
  expectedEnds(
    'expect-end',
    'expected ends that are over are kept',
    "redis.call('ZREMRANGEBYSCORE', ENDS, '-inf', now)\n",
  ),
  // A script must use each of its constants.
  expectedEnds('expect-end', 'expected ends never end', "'PEXPIRE', ENDS, LEASE_MS_MAX", "'ECHO', LEASE_MS_MAX"),
  life('limits/lua/acquire', 'keys of limits never end', "redis.call('PEXPIRE', key, 2 * lifeMs)"),
  life(
    'limits/lua/acquire',
    'the life of keys is never renewed',
    "redis.call('PTTL', key) < lifeMs",
    "redis.call('PTTL', key) < 0",
  ),
  life('limits/lua/acquire', 'the life of keys is renewed at each call', "redis.call('PTTL', key) < lifeMs", 'true'),
  life('limits/lua/end', 'leases that are handed on are gone after a second', '2 * LEASE_MS_MAX', 'LEASE_MS_MAX / 900'),
  life('throttles/lua/take-throttle', 'a throttle is kept for ever', "redis.call('PEXPIRE', LOG, windowMs)\n"),
  login('failures are remembered for ever', "redis.call('PEXPIRE', LOG, windowMs)\n"),
  life(
    'limits/lua/record-usage',
    'usage counts again after three seconds',
    "'EX', MARKER_SECONDS",
    "'EX', MARKER_SECONDS / 100",
  ),
  life('queue/lua/record-call', 'an asynchronous call is remembered for ever', ", 'EX', seconds"),
  life('queue/lua/start-call', 'that a call has begun is kept for ever', ", 'PX', ARGV[1]"),
  life('queue/lua/store-result', 'a result is kept for ever', ", 'PX', lifeMs"),
  life('queue/lua/store-result', 'a call outlives its result', "redis.call('PEXPIRE', CALL, lifeMs)\n"),
  life('queue/lua/store-result', 'the index of results is kept for ever', "redis.call('PEXPIRE', INDEX, lifeMs)\n"),
  life('queue/lua/store-result', 'the bytes of results are kept for ever', "redis.call('PEXPIRE', TOTAL, lifeMs)\n"),
  life('queue/lua/store-body', 'a body is kept for ever', ", 'PX', lifeMs"),
  life('queue/lua/store-body', 'the index of bodies is kept for ever', "redis.call('PEXPIRE', INDEX, lifeMs)\n"),
  answers('an answer is kept for ever', ", 'PX', lifeMs"),
  setBack(
    'redis/lua/set-back',
    'a clock set back leaves the log later than now',
    "redis.call('ZADD', log, latest, member)",
  ),
  setBack(
    'caps/lua/include/follow-set-back',
    'a clock set back lengthens a close',
    'state[field] - by',
    'state[field]',
  ),
  setBack(
    'caps/lua/include/follow-set-back',
    'a clock set back lengthens leases',
    'now + LEASE_MS',
    'now + 1000 * LEASE_MS',
  ),
  setBack(
    'caps/lua/acquire',
    'a poll does not see that the clock was set back',
    'and capFollowsSetBack()',
    'and false',
  ),
  setBack(
    'caps/lua/include/follow-set-back',
    'a clock set back lengthens the demand of shares',
    'hasShares and followSetBack(DEMAND, latest) or 0',
    '0',
  ),
  setBack(
    'caps/lua/include/state',
    'a clock set back lengthens the hold after a loss',
    'if (state.initialisedAt or 0) > now then',
    'if false then',
  ),
  setBack(
    'caps/lua/include/join',
    'a refusal does not see that the clock was set back',
    'if capFollowsSetBack()',
    'if false',
  ),
  clockBack('a minute does not see that the clock was set back', 'if limits.resetMs > MINUTE_MS', 'if false'),
  throttleSetBack(
    'a throttle does not see that the clock was set back',
    "  followSetBack(LOG, string.format('%.0f', nowMs))\n",
  ),
  login(
    'a wait for a log-in does not see that the clock was set back',
    "  followSetBack(LOG, string.format('%.0f', nowMs))\n",
  ),
  beat('a full Redis takes no heartbeat', '#!lua flags=allow-oom', '#!lua'),
  counts('counts are kept for ever', "redis.call('EXPIRE', COUNTS, seconds)\n"),
  counts('counts replace what was counted before', "redis.call('HINCRBY'", "redis.call('HSET'"),
  counts('counts of accounts replace what was counted before', "redis.call('ZINCRBY'", "redis.call('ZADD'"),
  counts('accounts with the most calls are not kept', '0, -keptMax - 1', '-keptMax, -1'),
  beat('a heartbeat is not written', "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])"),
  signIns('a sign-in stays for ever', "sealed, 'PX', lifeMs)", 'sealed)'),
  signIns('an index of sign-ins stays for ever', "  redis.call('PEXPIRE', index, lifeMs)\n"),
  signIns('a client has one more sign-in', "redis.call('ZCARD', index) - max", "redis.call('ZCARD', index) - max - 1"),
  signIns('the newest sign-in goes', "redis.call('ZRANGE'", "redis.call('ZREVRANGE'"),
  signIns('a sign-in that left its index stays', "    redis.call('DEL', oldest)\n"),
  signIns('nothing bounds the sign-ins of a client', 'enter(OF_CLIENT, clientMax)\n'),
  signIns('all clients have any number of sign-ins', 'enter(ALL, allMax)\n'),
]

const ROOT = resolve(import.meta.dirname, '../..')

async function copyProject(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-mutations-'))
  for (const name of ['src', 'workers', 'test', 'migrations', 'package.json']) {
    await cp(join(ROOT, name), join(folder, name), { recursive: true })
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Longest time that a test may take, milliseconds. A mutation can make a test wait for ever. */
const TEST_MS_MAX = 120_000

/**
 * Returns the first test that fails, or undefined. At the failure it kills the process of the file,
 * because under a mutation each later test might wait as long as a test may take.
 */
async function failingTest(folder: string, tests: string[], signal: AbortSignal): Promise<string | undefined> {
  for (const file of tests) {
    const flags = ['--test', '--test-isolation=none', '--test-reporter=tap', `--test-timeout=${TEST_MS_MAX}`]
    const child = spawn(process.execPath, [...flags, '--test-force-exit', file], {
      cwd: folder,
      env: { ...process.env, PROPERTY_SHRINK: 'off', TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
      ...{ signal, killSignal: 'SIGKILL' },
    })
    let [output, name]: [string, string | undefined] = ['', undefined]
    child.stdout.on('data', (data) => {
      output += String(data)
      name ??= /^\s*not ok \d+ - (.*)\n/m.exec(output)?.[1]
      // A file that cannot be loaded goes on, because it still prints the reason.
      if (name !== undefined && name !== file) child.kill('SIGKILL')
    })
    const [code] = await once(child, 'close').finally(() => endServices(folder))
    if (name !== undefined && name !== file) return `${file}: ${name}`
    // The mutation broke more than the rule that it is meant to break, so it proves nothing about
    // the tests.
    if (code !== 0) throw new Error(`${file} ended before its tests:\n${output}`)
  }
  return undefined
}

/** Stops what a killed test file leaves behind: its Redis, and its folder. */
async function endServices(folder: string): Promise<void> {
  for await (const name of glob('agw-test-*/redis', { cwd: folder })) {
    const dataDir = resolve(folder, name, '..')
    const redis = await startRedis({ dataDir, print: () => undefined, install: 'no' })
    await redis.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Writes the table that says which test caught which mutation. */
async function writeTable(caught: { mutation: Mutation; by: string }[]): Promise<void> {
  const rows = caught.map(({ mutation, by }) => {
    const [file = '', name = ''] = by.split(/: (.*)/s)
    return `| \`${mutation.file.replace(/^src\//, '')}\` | ${mutation.name} | ${name} (\`${file.slice('test/'.length)}\`) |`
  })
  const head = [
    '# Mutations of the Lua scripts',
    '',
    `\`npm run test:mutations\` broke each script in these ${caught.length} ways, one at a time, and wrote down the test that failed first.`,
    '',
    '| Script | Mutation | Test that caught it |',
    '| --- | --- | --- |',
  ]
  await writeFile(join(ROOT, 'test/tools/mutations.md'), `${[...head, ...rows].join('\n')}\n`)
}

const USAGE = `npm run test:mutations             every mutation, and writes the table in mutations.md
npm run test:mutations -- <text>   the mutations whose script or name contains the text`

async function main([word = '']: string[]): Promise<number> {
  const chosen = MUTATIONS.filter(({ file, name }) => `${file} ${name}`.includes(word))
  if (chosen.length === 0) {
    console.log(word === '--help' ? USAGE : `No mutation contains "${word}".\n${USAGE}`)
    return word === '--help' ? 0 : 1
  }
  const folder = await copyProject()
  const postgres = await startPostgres({ dataDir: folder, print: () => undefined })
  process.env.TEST_DATABASE_URL = postgres.superuserUrl
  // If a time limit or Ctrl-C ends this process, it stops the servers too.
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())
  const caught: { mutation: Mutation; by: string }[] = []
  try {
    // A test that fails without a mutation would seem to catch every mutation.
    const failing = await failingTest(folder, [...new Set(chosen.flatMap(({ tests }) => tests))], ending.signal)
    if (failing) throw new Error(`${failing} fails without any mutation`)
    for (const mutation of chosen) {
      const { name, file, from, to, tests } = mutation
      const path = join(folder, file)
      const text = await readFile(path, 'utf8')
      if (!text.includes(from)) throw new Error(`${file} has no "${from.trim()}" any more`)
      await writeFile(path, text.replace(from, to))
      const by = await failingTest(folder, tests, ending.signal).finally(() => writeFile(path, text))
      if (by) caught.push({ mutation, by })
      console.log(by ? `✔ ${file}: ${name} — ${by}` : `✖ ${file}: ${name} was not caught`)
    }
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const survivors = chosen.length - caught.length
  console.log(survivors === 0 ? 'All were caught.' : `${survivors} were not caught.`)
  if (survivors === 0 && word === '') await writeTable(caught)
  return survivors === 0 ? 0 : 1
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)))
