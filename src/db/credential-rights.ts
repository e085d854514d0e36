import { sql } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import { isUnexpired } from './api-keys.ts'
import type { Db } from './database.ts'
import type { Trust } from './users.ts'

/** What the owner of a credential lets it do, and what is known about its account. */
export interface CredentialRights extends Trust {
  tier: Tier
  /** Slugs of the APIs that it may call; null: all. */
  apis: string[] | null
  mayWrite: boolean
}

/**
 * The rights that a key, a connection or a log-in has now. Undefined if it no longer works: it has
 * ended, or its account is disabled.
 */
export async function findCredentialRights(db: Db, id: string): Promise<CredentialRights | undefined> {
  const { rows } = await sql<CredentialRights>`
    select tier, created_at, email_verified_at, approved_at, signup_network, apis, may_write as "mayWrite"
    from users join (
      select user_id, apis, may_write from api_keys where id = ${id} and revoked_at is null and ${isUnexpired}
      union all
      select user_id, apis, may_write from connections where id = ${id} and revoked_at is null
      union all
      select user_id, null, true from sessions where id = ${id} and revoked_at is null and expires_at > now()
    ) credential on user_id = users.id
    where disabled_at is null`.execute(db)
  return rows[0]
}
