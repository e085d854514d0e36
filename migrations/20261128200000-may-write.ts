import type { Kysely } from 'kysely'

/** Whether a key or an application may call endpoints that change something at their source. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['api_keys', 'connections']) {
    await db.schema
      .alterTable(table)
      .addColumn('may_write', 'boolean', (column) => column.notNull().defaultTo(false))
      .execute()
  }
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['api_keys', 'connections']) await db.schema.alterTable(table).dropColumn('may_write').execute()
}
