import Type, { type Static } from 'typebox'
import { momentOf } from '../catalog/calendar.ts'
import { type AuditFilter, listAuditRecords } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { AuditEntry } from '../db/schema.ts'
import { GatewayError } from '../errors.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 500

/**
 * Records that an export reads with one query. Between queries it holds no connection of the pool,
 * even if its reader is slow.
 */
const EXPORT_BATCH = 500

const DAY_MS = 86_400_000

const Moment = Type.String({
  pattern: '^(\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,6})?)?Z)?)?$',
  description: 'A day or a moment, UTC: 2026-11-26 or 2026-11-26T03:00:00Z',
})
const Text = (description: string) => Type.String({ maxLength: 100, description })

/** Filters of the audit log. An empty text counts as absent, because forms send empty fields. */
export const AuditQuery = Type.Object({
  from: Type.Optional(Moment),
  to: Type.Optional(Moment),
  actor: Type.Optional(Text('A part of the name of the operator')),
  action: Type.Optional(Text('upstream.pause, or upstream for all changes of upstreams')),
  subject: Type.Optional(Text('Slug of the upstream, or id of the account or key')),
  limit: Type.Optional(
    Type.String({
      pattern: '^[1-9]\\d{0,2}$',
      description: `Number of records of a page: ${LIMIT_DEFAULT} by default, ${LIMIT_MAX} at most`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({ pattern: '^\\d{0,18}$', description: 'End of the previous page: the value in its Link header' }),
  ),
})
export type AuditQuery = Static<typeof AuditQuery>

/** One page, the newest records first. */
export interface AuditPage {
  records: AuditEntry[]
  /** The query string of the next page; undefined on the last page. */
  next: URLSearchParams | undefined
}

/**
 * Reads a page.
 * @throws GatewayError VALIDATION_ERROR if a text is not a date
 */
export async function readAuditPage(db: Db, query: AuditQuery): Promise<AuditPage> {
  const limit = Math.min(Number(query.limit ?? LIMIT_DEFAULT), LIMIT_MAX)
  const found = await listAuditRecords(db, filterOf(query), limit + 1)
  const records = found.slice(0, limit)
  const last = records.at(-1)
  if (found.length <= limit || !last) return { records, next: undefined }
  const members = Object.entries({ ...query, cursor: last.id }).filter(([, value]) => value)
  return { records, next: new URLSearchParams(members) }
}

/**
 * Every matching record as a line of JSON, the newest first.
 *
 * @throws GatewayError VALIDATION_ERROR if a text is not a date
 */
export function exportAudit(db: Db, query: AuditQuery): AsyncGenerator<string> {
  return auditLines(db, filterOf(query))
}

async function* auditLines(db: Db, filter: AuditFilter): AsyncGenerator<string> {
  let beforeId = filter.beforeId
  while (true) {
    const records = await listAuditRecords(db, { ...filter, beforeId }, EXPORT_BATCH)
    if (records.length > 0) yield records.map((record) => `${JSON.stringify(auditAnswer(record))}\n`).join('')
    if (records.length < EXPORT_BATCH) return
    beforeId = records.at(-1)?.id
  }
}

/** A record in the form of the operator API. */
export function auditAnswer(record: AuditEntry) {
  return { ...record, at: record.at.toISOString() }
}

function filterOf({ from, to, actor, action, subject, cursor }: AuditQuery): AuditFilter {
  // If the end is a day, all hours of this day are included.
  const end = readMoment('to', to)
  return {
    from: readMoment('from', from),
    to: end && (to?.length === 10 ? new Date(end.getTime() + DAY_MS) : end),
    actor: actor || undefined,
    action: action || undefined,
    subject: subject || undefined,
    beforeId: cursor || undefined,
  }
}

function readMoment(name: string, text: string | undefined): Date | undefined {
  if (!text) return undefined
  const moment = momentOf(text)
  if (!moment) throw new GatewayError('VALIDATION_ERROR', { message: `${name} is not a date.` })
  return moment
}
