import type pg from 'pg'
import { openClient, PostgresAccess } from '../../db/postgres-access.ts'

/** The database of the service, and the role that owns only this database. */
const DATABASE = 'gateway'
export const ROLE = 'gateway'

/** The role that initdb creates. The service never uses it. */
export const SUPERUSER = 'postgres'

export interface ClusterAddress {
  port: number
  superuserPassword: string
  password: string
}

/**
 * The address of a database, for the service's role or for the superuser. It sets all parameters,
 * so that libpq's environment variables, which are for another Postgres, have no effect.
 */
export function addressOf(
  { port, superuserPassword, password }: ClusterAddress,
  role = ROLE,
  database = DATABASE,
): string {
  return `postgres://${role}:${role === ROLE ? password : superuserPassword}@127.0.0.1:${port}/${database}?sslmode=disable&options=`
}

/**
 * Creates the service's role and database if they are missing, and gives the role everything that
 * an earlier version created as the superuser. The role can neither read files of the machine nor
 * run programs on it.
 *
 * @returns true when they exist; undefined while the server is not ready
 * @throws the server's error if it refuses
 */
export async function prepareRoles(address: ClusterAddress): Promise<true | undefined> {
  try {
    await query(addressOf(address, SUPERUSER, SUPERUSER), async (client) => {
      const { rowCount: roles } = await client.query('select 1 from pg_roles where rolname = $1', [ROLE])
      if (roles === 0) await client.query(`create role ${ROLE} login`)
      // The password is base64url, so it needs no quoting.
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

/** Changes the owner of tables and views. Indexes and sequences of columns follow their tables. */
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
