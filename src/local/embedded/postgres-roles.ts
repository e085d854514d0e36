import type pg from 'pg'
import { openClient, PostgresAccess } from '../../db/postgres-access.ts'

/** The database of the service, and the role that owns it and nothing else. */
const DATABASE = 'gateway'
export const ROLE = 'gateway'

/** The role that initdb makes; the service never connects as it. */
export const SUPERUSER = 'postgres'

export interface ClusterAddress {
  port: number
  superuserPassword: string
  password: string
}

/**
 * The address of a database, as the role that owns the service's own, or as the superuser. It
 * leaves nothing to the variables of libpq, which are for a Postgres elsewhere.
 */
export function addressOf(
  { port, superuserPassword, password }: ClusterAddress,
  role = ROLE,
  database = DATABASE,
): string {
  return `postgres://${role}:${role === ROLE ? password : superuserPassword}@127.0.0.1:${port}/${database}?sslmode=disable&options=`
}

/**
 * Makes the service's role and database if they are missing, and gives it what an earlier version
 * made as the superuser. The role can neither read files of the machine nor run programs on it.
 *
 * @returns true if they are there; undefined while the server is not ready
 * @throws Error of the server if it refuses
 */
export async function prepareRoles(address: ClusterAddress): Promise<true | undefined> {
  try {
    await query(addressOf(address, SUPERUSER, SUPERUSER), async (client) => {
      const { rowCount: roles } = await client.query('select 1 from pg_roles where rolname = $1', [ROLE])
      if (roles === 0) await client.query(`create role ${ROLE} login`)
      // The password is base64url: nothing in it needs a quote.
      await client.query(`alter role ${ROLE} nosuperuser nocreatedb nocreaterole password '${address.password}'`)
      const { rowCount: databases } = await client.query('select 1 from pg_database where datname = $1', [DATABASE])
      if (databases === 0) await client.query(`create database ${DATABASE} owner ${ROLE}`)
      else await client.query(`alter database ${DATABASE} owner to ${ROLE}`)
    })
    await query(addressOf(address, SUPERUSER), (client) => client.query(TAKE_OVER))
    return true
  } catch (error) {
    const code = (error as { code?: string }).code ?? ''
    if (['ECONNREFUSED', 'ECONNRESET', '57P03'].includes(code)) return undefined
    throw error
  }
}

/**
 * Tables, views and sequences of their own; indexes and the sequences of columns go with their
 * tables.
 */
const TAKE_OVER = `
do $$
declare found record;
begin
  for found in
    select format('%I.%I', n.nspname, c.relname) as name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p', 'v', 'm') and pg_get_userbyid(c.relowner) <> '${ROLE}'
  loop
    execute format('alter table %s owner to ${ROLE}', found.name);
  end loop;
end $$`

async function query(url: string, run: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = await openClient(new PostgresAccess(url))
  try {
    await run(client)
  } finally {
    await client.end()
  }
}
