import { type RawBuilder, sql } from 'kysely'

/** Which rows of a listing to read, newest first. */
export interface RowRange {
  limit: number
  /** The row before the first row to read. */
  after: RowPosition | undefined
}

/** The position of a row in a listing. It stays valid after the row is deleted. */
export interface RowPosition {
  id: string
  /**
   * When the row was created, microseconds since 1970 (a `Date` is less exact). Undefined: the
   * row's own time is used, so the row must still exist.
   */
  createdMicros: string | undefined
}

export type Listed<Row> = Row & { createdMicros: string }

type ListedTable = 'teams' | 'api_keys' | 'users'

/** The `createdMicros` of a row. */
export function createdMicrosOf(table: ListedTable): RawBuilder<string> {
  return sql<string>`(extract(epoch from ${sql.ref(`${table}.created_at`)}) * 1000000)::bigint`
}

/** Whether a row comes after a position. Without a position, every row does. */
export function isAfter(table: ListedTable, position: RowPosition | undefined): RawBuilder<boolean> {
  if (position === undefined) return sql<boolean>`true`
  const { id, createdMicros } = position
  const createdAt =
    createdMicros === undefined
      ? sql`(select created_at from ${sql.table(table)} where id = ${id})`
      : sql`timestamptz 'epoch' + ${createdMicros}::bigint * interval '1 microsecond'`
  return sql<boolean>`(${sql.ref(`${table}.created_at`)}, ${sql.ref(`${table}.id`)}) < (${createdAt}, ${id}::uuid)`
}
