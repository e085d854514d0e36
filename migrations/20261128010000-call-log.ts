import { type Kysely, sql } from 'kysely'

/**
 * One row for each call that ended, in partitions of a UTC day, which are created and dropped as the days pass. The table
 * holds no parameters, bodies, headers or addresses. It has no default partition, because a default partition is scanned
 * whenever another partition is attached.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table call_log (
    id uuid not null,
    at timestamptz(3) not null,
    request_id uuid,
    account_id uuid not null,
    key_id uuid,
    status smallint not null,
    attempts smallint,
    quoted_ms integer,
    admission_ms real,
    queue_ms real,
    permit_ms real,
    upstream_ms real,
    total_ms real not null,
    bytes integer,
    mode text not null,
    via text not null,
    slug text not null,
    endpoint text,
    code text,
    cause text,
    cache text,
    tool text,
    primary key (id, at)
  ) partition by range (at)`.execute(db)
  await sql`create index call_log_account on call_log (account_id, at desc, id desc)`.execute(db)
  await sql`create index call_log_at on call_log (at desc, id desc)`.execute(db)
  await sql`create index call_log_request on call_log (request_id)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('call_log').execute()
}
