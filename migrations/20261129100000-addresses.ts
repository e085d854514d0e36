import { type Kysely, sql } from 'kysely'

/**
 * Networks from which a key or an application may be used. Nodes of the version before pass over
 * the new column: set the first list after the upgrade.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['api_keys', 'connections'])
    await db.schema.alterTable(table).addColumn('addresses', sql`cidr[]`).execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['api_keys', 'connections']) await db.schema.alterTable(table).dropColumn('addresses').execute()
}
