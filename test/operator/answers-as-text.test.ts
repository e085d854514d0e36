import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  changesText,
  overviewText,
  queueText,
  statusText,
  usersText,
  userText,
} from '../../src/operator/answers-as-text.ts'

const call = {
  ...({ id: `call_${'0'.repeat(32)}`, state: 'waiting-for-cap', ahead: 3, accountId: 'a', email: null } as const),
  ...({ endpoint: '/search', mode: 'live', async: false, ownKey: false } as const),
  ...{ ageMs: 1_500, deadlineInMs: 65_000, undeclared: [] },
}
const queue = {
  at: '2026-01-01T00:00:00.000Z',
  slug: 'geocoding',
  workers: 1,
  more: false,
  otherJobs: [],
  failedJobs: [],
}

it('a queue as text shows nothing that acts on a terminal, whatever a caller wrote', () => {
  const hostile = `\u001b]0;owned\u0007\u001b[2J\u202e\n\r${'x'.repeat(300)}`
  const text = queueText({
    ...queue,
    calls: [{ ...call, email: 'ann@example.com', parameters: { [hostile]: hostile } }],
  })
  const [heads = '', row = '', ...rest] = text.split('\n')
  assert.match(heads, /^STATE +CALL +ACCOUNT +REQUEST +AGE +DEADLINE IN$/)
  assert.match(row, /^cap, 3 be.* \/search \?\]0;owned/)
  assert.deepEqual(rest, ['', 'geocoding: 1 call here, 1 worker serves it.'])
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\u202e]/u)
})

it('a queue as text names jobs that a defect ended, and says when nothing is known', () => {
  const failed = { id: 'check', name: 'validate-key', at: '2026-01-01T00:00:00.000Z', reason: 'no such thing' }
  const otherJobs = [{ name: 'probe', title: 'half-open attempt', running: false, dueInMs: 90_000 }]
  assert.equal(
    queueText({ ...queue, calls: [], otherJobs, failedJobs: [failed], workers: 0 }),
    `ENDED BY A DEFECT  ID     WHY            WHEN
validate-key       check  no such thing  2026-01-01 00:00:00

geocoding: 0 calls here, 0 workers serve it. half-open attempt in 1 min 30 s`,
  )
  assert.match(queueText({ ...queue, calls: null, otherJobs: null, failedJobs: null, workers: null }), /^Unknown/)
})

it('an account as text says what it may do: an approval lets its live calls go and proves no address', () => {
  const user = {
    ...({ id: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', email: 'a@b.c', tier: 'developer', plan: 'Free' } as const),
    ...{ disabled: false, approved: false, emailVerified: false, createdAt: '2026-01-01T00:00:00.000Z' },
  }
  const words = (change: Partial<Parameters<typeof userText>[0]>) =>
    userText({ ...user, liveCallsNeed: null, ...change }).replaceAll('\n', ' ')
  assert.match(words({ liveCallsNeed: 'approval' }), /until an operator approves the account \(--approve\)\.$/)
  assert.match(
    words({ liveCallsNeed: 'verification' }),
    /until its email address is verified, or an operator approves the account/,
  )
  assert.match(
    words({ approved: true }),
    /answers its live calls\. The approval does not verify its email address: .* to a team/,
  )
  assert.match(words({ approved: true, emailVerified: true }), /answers its live calls\.$/)
  assert.match(words({}), /answers its live calls\.$/)
  assert.match(
    words({ disabled: true, liveCallsNeed: 'approval' }),
    /cannot log in, and the gateway refuses its calls\.$/,
  )
})

it('accounts as text show address and id whole, because commands take them, and whether there are more', () => {
  const email = `somebody.with.a.long.name@${'department.'.repeat(4)}example.com`
  const user = {
    ...({ id: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', email, tier: 'enterprise', plan: 'Elite (contract)' } as const),
    ...{
      disabled: false,
      approved: false,
      emailVerified: false,
      createdAt: '2026-01-01T00:00:00.000Z',
      liveCallsNeed: null,
    },
  }
  const text = usersText({ users: [user], more: false })
  assert.ok(text.includes(email) && text.includes(user.id), text)
  assert.match(text, / enterprise +Elite \(contract\) +unverified +2026-01-01 /)
  assert.doesNotMatch(text, /more/)
  assert.match(
    usersText({ users: [user, user], more: true }),
    /\n2 shown, and there are more\. Give a part of the email address to narrow the list\.$/,
  )
})

it('a status as text prints a headline that is also a problem only once', () => {
  const problem = {
    ...{ rank: 0, label: 'Network', slug: null, text: '3 of 4 APIs cannot be reached', callers: 'Callers get 502.' },
    ...{ todo: 'Check DNS.', runbook: 'network', endedAt: null },
  }
  const status = (text: string) =>
    statusText({
      ...{ at: '2026-01-01T00:00:00.000Z', headline: { state: 'Down', label: 'Network', text }, problems: [problem] },
      ...{ callsLastMinute: 0, upstreams: [], processes: [] },
      ...{ stores: { redis: null, postgres: null }, accounts: null },
    })
  assert.equal(status(`${problem.text}.`).split('\n')[0], '[Network] 3 of 4 APIs cannot be reached')
  assert.equal(status('Redis does not answer.').split('\n')[0], 'Redis does not answer.')
})

it('an overview as text says why an API is disabled', () => {
  const row = {
    ...{ slug: 'news', enabled: false, paused: null, queue: null, caps: null, health: null },
    ...{ lackedContact: null, recent: null, lastMinute: null },
  }
  const why = (switchedOff: boolean) =>
    overviewText({
      ...{ at: '2026-01-01T00:00:00.000Z', headline: { state: 'Healthy', label: 'Healthy', text: '' }, problems: [] },
      ...{ callsLastMinute: 0, upstreams: [{ ...row, switchedOff }], processes: [] },
      ...{ stores: { redis: null, postgres: null }, accounts: null },
    })
  assert.match(why(false), /^news +Disabled .* needs a key$/m)
  assert.match(why(true), /^news +Disabled .* switched off$/m)
})

it('a call that an operator holds waits for the operator and not for the cap', () => {
  const text = queueText({ ...queue, calls: [{ ...call, state: 'held', parameters: {} }] })
  assert.match(text, /\nuntil resume +call_0+ /)
})

it('a change without a state before it says what is there now', () => {
  assert.equal(changesText(null, { role: 'operator' }), 'role operator')
  assert.equal(changesText({ paused: null }, { paused: 'hold' }), 'paused default → hold')
})
