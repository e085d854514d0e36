import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * `npm run test:mutations [word]`: breaks the Lua scripts one way at a time, in a copy of the project, and reports which
 * test caught it. Ends with 1 when one was not caught. A word runs only the mutations whose file or name has it.
 */

interface Mutation {
  name: string
  file: string
  from: string
  to: string
  tests: string[]
}

const CAPS = ['test/caps/shares.test.ts', 'test/caps/model.test.ts']
const LIMITS = ['test/limits/model.test.ts']

const caps = (file: string, name: string, from: string, to = ''): Mutation => ({
  ...{ name, from, to, tests: CAPS },
  file: `src/caps/lua/${file}.lua`,
})
const together = (name: string, from: string, to = ''): Mutation => ({
  ...{ name, from, to, tests: ['test/caps/join-together.test.ts'] },
  file: 'src/caps/lua/include/join-together.lua',
})
const limits = (file: string, name: string, from: string, to = ''): Mutation => ({
  ...{ name, from, to, tests: LIMITS },
  file: `src/limits/lua/${file}.lua`,
})

export const MUTATIONS: Mutation[] = [
  caps('include/plan', 'a window admits one more', '#planned - max\n', '#planned - max - 1\n'),
  caps('include/slots', 'a window is 100 ms too short', 'now - rule.window)', 'now - rule.window + 100)'),
  caps('include/plan', 'a share is one more than half', 'math.floor(rule.max / 2) + 1', 'math.floor(rule.max / 2)'),
  caps('include/plan', 'shares bind nobody', 'rule.demand > 0', 'false'),
  caps(
    'include/plan',
    'nothing is kept for newcomers',
    'rule.kept = math.floor(rule.max * KEPT_SHARE)',
    'rule.kept = 0',
  ),
  caps('include/plan', 'others never count as quiet', 'return tonumber(demandAt or 0)', 'return now'),
  caps('include/plan', 'what the upstream has left is ignored', '#planned >= state.left', 'false'),
  caps('include/plan', 'a close is ignored', 'local at = math.max(now, state.closed)', 'local at = now'),
  caps('include/state', 'a cold start is not held', 'if (state.initialisedAt or 0) == 0', 'if true'),
  caps('acquire', 'the greatest tag goes first', "redis.call('ZRANGE', WAITERS", "redis.call('ZREVRANGE', WAITERS"),
  caps('join-queue', 'plans weigh nothing', 'COST / weight', 'COST'),
  caps('include/schedule', 'asynchronous calls leave no room', 'not lastWasAsync and ', ''),
  caps(
    'include/dequeue',
    'deadlines of queued calls are left behind',
    "  redis.call('ZREM', QUEUE_DEADLINES, unpack(members))\n",
  ),
  caps('include/dequeue', 'the count of a share is left behind', '-number)', '0)'),
  caps('include/dequeue', 'the count of asynchronous calls is left behind', "'async', -async)", "'async', 0)"),
  caps('include/evict', 'an evicted call stays in the queue', '  dequeue({member})\n'),
  caps('include/evict', 'an evicted call gets no refusal', "  redis.call('ZADD', EVICTED, score(retryAt), member)\n"),
  caps('include/evict', 'no call is ever too late', 'return at > now and', 'return false and'),
  caps(
    'join-queue',
    'a newcomer takes quoted slots',
    'for _, entry in ipairs(late) do evict(entry[1], entry[2]) end\n',
  ),
  caps(
    'join-queue',
    'calls that cannot be in time are queued',
    'if at <= now or isAnsweredInTime(at, deadline) then',
    'if true then',
  ),
  caps('join-queue', 'calls of equal start change places', ' % SEQ_SPAN / SEQ_SPAN', ' * 0'),
  caps('join-queue', 'demand is not noted', "  redis.call('ZADD', DEMAND, score(now), share)\n"),
  together(
    'calls that come together find no queue before them',
    'if length > 0 then length = length - dequeueExpired() end',
    'length = 0',
  ),
  together('calls that come together need not have room', 'if slotAt(most) > now then return nil end\n'),
  together('calls that come together weigh nothing', 'COST / call.weight', 'COST'),
  together('calls that come together change places', 'seq = seq + 1\n'),
  together(
    'calls that come together do not wait for connections',
    'if congestionMs(most) > CONGESTION_MS_MAX then return nil end\n',
  ),
  together('calls that come together follow none of their own', 'leaders[call.coalesced] = call.member\n'),
  together('calls that come together are not counted as asynchronous', 'async = async + 1', 'async = 0'),
  caps('acquire', 'granted calls stay among the waiters', "  redis.call('ZREM', WAITERS, unpack(granted))\n"),
  caps('acquire', 'grants are not logged', "  redis.call('ZADD', LOG, unpack(logged))\n"),
  caps('acquire', 'leases are not kept', "  redis.call('ZADD', LEASES, unpack(leased))\n"),
  caps('acquire', 'concurrency is not looked at', '  if connections <= 0 then return nil end\n'),
  caps('acquire', 'a repeated request takes a quoted slot', 'if mayBeLate then', 'if false then'),
  caps('include/release-permits', 'leases are never released', "  redis.call('ZREM', LEASES, unpack(permits))\n"),
  caps(
    'release-unused',
    'an unused permit keeps its lease',
    "if redis.call('ZREM', LEASES, permit) == 1 then",
    'if false then',
  ),
  caps('release-unused', 'an unused permit counts as used', "redis.call('ZREM', LOG, permit)\n"),
  caps('leave-queue', 'a call that left is still a waiter', "redis.call('ZREM', WAITERS, member)\n"),
  caps('leave-queue', 'a call that left stays in the queue', 'dequeue({member})\n'),
  caps('renew', 'a lease is not extended', 'now + tonumber(ARGV[2])', 'now'),
  caps('renew', 'a lease that has ended begins again', "'XX', ", ''),
  caps('apply-upstream-limit', 'all go at once after a close', "'ramp', 1,", "'ramp', 64,"),
  caps('apply-upstream-limit', 'a close evicts nobody', '> 0 then evictTooLate() end', '< 0 then evictTooLate() end'),
  {
    name: 'all go at once when a breaker closes',
    from: "'ramp', 1,",
    to: "'ramp', 64,",
    tests: ['test/workers/permit-clients.test.ts'],
    file: 'src/caps/lua/begin-gradually.lua',
  },
  limits('acquire-limits', 'the minute admits one more', 'inMinute >= perMinute', 'inMinute > perMinute'),
  limits('acquire-limits', 'one more may be in flight', 'inFlight >= inFlightMax', 'inFlight > inFlightMax'),
  limits('acquire-limits', 'the month admits one more', 'inMonth >= perMonth', 'inMonth > perMonth'),
  limits(
    'acquire-limits',
    'a minute is a millisecond too short',
    'nowMicros - MINUTE_MICROS)',
    'nowMicros - MINUTE_MICROS + 1000)',
  ),
  limits('acquire-limits', 'the month is not counted', "redis.call('INCRBY', MONTH, granted)"),
  limits('acquire-limits', 'leases never end', "redis.call('ZREMRANGEBYSCORE', IN_FLIGHT, '-inf', nowMs)\n"),
  limits('acquire-limits', 'a lowered limit tells the wrong wait', 'inMinute - perMinute or 0', '0 or 0'),
  limits(
    'release-limits',
    'a call is released twice',
    "if redis.call('ZREM', IN_FLIGHT, callId) == 1 then",
    'if true then',
  ),
  limits('release-limits', 'a failed call is not refunded', 'if refunds > 0 then', 'if false then'),
  limits(
    'refund-limits',
    'a call is refunded twice',
    "if redis.call('ZREM', IN_FLIGHT, callId) == 0 then return 0 end\n",
  ),
  limits('refund-limits', 'a refund leaves the minute', "redis.call('ZREM', MINUTE, callId)\n"),
  limits('take-throttle', 'a throttle admits one more', '>= max', '> max'),
  limits('take-throttle', 'a throttle forgets early', 'nowMs - windowMs)', 'nowMs - windowMs + 1)'),
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

/** The first test that fails, or undefined. */
async function failingTest(folder: string, tests: string[]): Promise<string | undefined> {
  for (const file of tests) {
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', file], {
      cwd: folder,
      env: { ...process.env, PROPERTY_SHRINK: 'off' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (data) => {
      output += String(data)
    })
    const [code] = await once(child, 'exit')
    if (code === 0) continue
    const [, name = 'ended before its tests'] = /^\s*not ok \d+ - (.*)$/m.exec(output) ?? []
    return `${file}: ${name}`
  }
  return undefined
}

async function main([word = '']: string[]): Promise<number> {
  const folder = await copyProject()
  const survivors: string[] = []
  try {
    for (const { name, file, from, to, tests } of MUTATIONS) {
      if (!`${file} ${name}`.includes(word)) continue
      const path = join(folder, file)
      const text = await readFile(path, 'utf8')
      if (!text.includes(from)) throw new Error(`${file} has no "${from.trim()}" any more`)
      await writeFile(path, text.replace(from, to))
      const caught = await failingTest(folder, tests)
      await writeFile(path, text)
      if (!caught) survivors.push(`${file}: ${name}`)
      console.log(`${caught ? '✔' : '✖'} ${file}: ${name}${caught ? ` — ${caught}` : ' was not caught'}`)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  console.log(survivors.length === 0 ? 'All were caught.' : `${survivors.length} were not caught.`)
  return survivors.length === 0 ? 0 : 1
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)))
