import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, it } from 'node:test'
import { openDatabase } from '../../src/db/database.ts'
import { FREE_ROWS_MAX, groupUsage, type UsageCount, writeUsageBatch } from '../../src/db/usage.ts'
import { createLog } from '../../src/log.ts'
import { startServices } from '../support/services.ts'

const services = await startServices()
const db = openDatabase(services.databaseUrl, createLog({ level: 'silent', pretty: false }, 'test'))
after(async () => {
  await db.destroy()
  await services.stop()
})

const DAY = '2026-05-01'

const count = (entry: Partial<UsageCount> & { accountId: string }): UsageCount => ({
  ...{ day: DAY, key: randomUUID(), slug: 'countries', status: 404, mode: 'live', isRefused: true, calls: 1 },
  ...entry,
})

const lines = async (accountId: string) =>
  await groupUsage(db, accountId, {
    ...{
      from: DAY,
      to: DAY,
      groupBy: ['day', 'api', 'key', 'status', 'mode', 'charged'],
      limit: 1_000,
      after: undefined,
    },
  })

const write = (counts: UsageCount[]) => writeUsageBatch(db, randomUUID(), counts)

it('usage of refused calls keeps a bounded number of rows for each account and day, and adds up the rest by status and mode', async () => {
  const [hostile, other] = [randomUUID(), randomUUID()]
  await write([
    ...Array.from({ length: FREE_ROWS_MAX - 10 }, () => count({ accountId: hostile })),
    count({ accountId: other }),
  ])
  await write(Array.from({ length: 500 }, () => count({ accountId: hostile, calls: 2 })))
  await write(Array.from({ length: 500 }, () => count({ accountId: hostile, status: 429 })))
  const report = await lines(hostile)
  assert.equal(report.total, FREE_ROWS_MAX - 10 + 1_000 + 500)
  assert.equal(report.lines.length, FREE_ROWS_MAX + 2)
  const rest = report.lines.filter(({ key }) => key === 'other')
  assert.deepEqual(
    rest.map(({ api, status, calls }) => ({ api, status, calls })),
    [
      { api: '-', status: 404, calls: 2 * 490 },
      { api: '-', status: 429, calls: 500 },
    ],
  )
  assert.equal((await lines(other)).lines[0]?.key === 'other', false)
})

it('usage adds to a row that is there although the account has all its rows, and another day has rows of its own', async () => {
  const accountId = randomUUID()
  const known = count({ accountId })
  await write([known])
  await write(Array.from({ length: FREE_ROWS_MAX + 5 }, () => count({ accountId })))
  await write([{ ...known, calls: 3 }])
  await write([{ ...known, day: '2026-05-02' }])
  const callsOn = async (day: string) =>
    (
      await groupUsage(db, accountId, {
        ...{ from: day, to: day, groupBy: ['key'], limit: 1_000, after: undefined },
      })
    ).lines.find(({ key }) => key === known.key)?.calls
  assert.equal(await callsOn(DAY), 4)
  assert.equal(await callsOn('2026-05-02'), 1)
})

it('usage of test calls and of failed calls is bounded as refusals are, and charged calls keep their keys', async () => {
  const accountId = randomUUID()
  const made = { accountId, isRefused: false, status: 200 }
  const charged = Array.from({ length: FREE_ROWS_MAX + 20 }, () => count({ ...made }))
  await write([
    ...charged,
    ...Array.from({ length: FREE_ROWS_MAX + 20 }, () => count({ ...made, mode: 'test' })),
    ...Array.from({ length: 30 }, () => count({ ...made, status: 502 })),
  ])
  const { lines: rows, total } = await lines(accountId)
  assert.equal(total, 2 * (FREE_ROWS_MAX + 20) + 30)
  const kept = rows.filter((line) => line.charged)
  assert.equal(kept.length, charged.length)
  assert.equal(
    kept.some(({ key }) => key === 'other'),
    false,
  )
  assert.equal(rows.filter((line) => !line.charged && line.key !== 'other').length, FREE_ROWS_MAX)
})
