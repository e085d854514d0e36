import type { ColumnType, Generated, Insertable, Selectable } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { ErrorCode } from '../errors.ts'
import type { AuditLogTable, CapGrantsTable, HealthChangesTable, UpstreamSettingsTable } from './operator-schema.ts'

/** The tables, as the migrations leave them. */
export interface Database {
  cap_grants: CapGrantsTable
  users: UsersTable
  sessions: SessionsTable
  account_links: AccountLinksTable
  identities: IdentitiesTable
  notices: NoticesTable
  api_keys: ApiKeysTable
  teams: TeamsTable
  team_members: TeamMembersTable
  usage_daily: UsageDailyTable
  /** Calls that were refused before they were queued: shown, never charged. */
  refusals_daily: UsageDailyTable
  usage_batches: UsageBatchesTable
  provider_keys: ProviderKeysTable
  upstream_settings: UpstreamSettingsTable
  audit_log: AuditLogTable
  call_log: CallLogTable
  health_changes: HealthChangesTable
  oauth_clients: OAuthClientsTable
  oauth_artifacts: OAuthArtifactsTable
  connections: ConnectionsTable
}

type Timestamp = ColumnType<Date, Date | undefined, Date>

interface UsersTable {
  id: string
  email: string
  /** Null for an account whose person signs in at the provider alone. */
  password_hash: string | null
  tier: Generated<Tier>
  disabled_at: Date | null
  terms_accepted_at: Date | null
  /** When the account proved that it receives mail at its address. */
  email_verified_at: Date | null
  /** When an operator let it make live calls. */
  approved_at: Date | null
  /** Whether it is mailed notices. */
  takes_notices: Generated<boolean>
  /** Network that it signed up from; null for addresses that are not public. */
  signup_network: string | null
  created_at: Timestamp
  updated_at: Timestamp
}

/** A log-in; its id is the `sid` of the session token. */
interface SessionsTable {
  id: string
  user_id: string
  created_at: Timestamp
  expires_at: Date
  revoked_at: Date | null
}

/** A one-time link that sets a new password. */
interface AccountLinksTable {
  /** SHA-256 of the token in the link. */
  token_hash: Buffer
  user_id: string
  /** Whether the link went to the account's address alone, so that its use proves the address. */
  proves_address: boolean
  expires_at: Date
}

/** To which account the sign-in of a person at an OIDC provider leads. */
interface IdentitiesTable {
  issuer: string
  /** The name that the provider gives to nobody else. */
  subject: string
  user_id: string
  created_at: Timestamp
}

export type Environment = 'live' | 'test'

interface ApiKeysTable {
  id: string
  /** Whose plan it counts against; for a team's key the owner of the team. */
  user_id: string
  /** The team it belongs to; null for a key of the account's own. */
  team_id: string | null
  environment: Environment
  /** HMAC-SHA-256 of the key under the pepper; the key itself is nowhere. */
  key_hash: Buffer
  last_four: string
  label: string | null
  created_at: Timestamp
  expires_at: Date | null
  last_used_at: Date | null
  /** The account that made it; null if that is not known or the account is gone. */
  created_by: string | null
  /** Whether it may call endpoints that change something. */
  may_write: Generated<boolean>
  revoked_at: Date | null
  /** Slugs it may call; null: all. */
  apis: string[] | null
  /** Networks (CIDR) from which it may be used; null: everywhere. */
  addresses: string[] | null
  /** Calls in any minute, calls a month and calls at once; null: as many as the plan allows. */
  per_minute: number | null
  per_month: number | null
  in_flight: number | null
  /**
   * Id under which its calls are counted, which a key inherits from the key that it replaces; null:
   * its own.
   */
  limits_id: string | null
  /** The key that replaced it. From then on its expiry is the end of the overlap. */
  replaced_by: string | null
}

/** Mails that were sent, so that each is sent once. */
interface NoticesTable {
  account_id: string
  kind: string
  period: string
  at: Timestamp
}

interface TeamsTable {
  id: string
  name: string
  owner_id: string
  created_at: Timestamp
  updated_at: Timestamp
}

export type Role = 'owner' | 'admin' | 'member'

interface TeamMembersTable {
  team_id: string
  user_id: string
  role: Role
  created_at: Timestamp
}

/** Ended calls of a UTC day. */
interface UsageDailyTable {
  /** YYYY-MM-DD. */
  day: ColumnType<string, string, never>
  user_id: string
  /** Id of the API key, or `session`. */
  key: string
  slug: string
  status: number
  mode: Environment
  calls: ColumnType<string, number | bigint, number | bigint>
}

/** Batches of the usage ledger that are written: each is counted once. */
interface UsageBatchesTable {
  id: string
  written_at: Timestamp
}

export type ProviderKeyStatus = 'valid' | 'invalid' | 'unvalidated'

/**
 * KEY_NOT_CHECKABLE: the upstream answers a made-up key as it answers this key, so nothing shows
 * whether it is a key.
 */
export type ValidationFailureCode = ErrorCode | 'KEY_NOT_CHECKABLE'

/** An upstream's key that a caller saved; a replaced key is a new row with a new id. */
interface ProviderKeysTable {
  id: string
  /** Whose it is: an account, or else a team. */
  user_id: string | null
  team_id: string | null
  slug: string
  /** Which encryption key sealed it. */
  secret_id: string
  sealed: Buffer
  /** Name of the cap that calls with this key count against. */
  cap_scope: string
  masked: string
  status: Generated<ProviderKeyStatus>
  saved_at: Timestamp
  last_validated_at: Date | null
  /** Why the last validation showed nothing of the key; null if it did, or none has ended. */
  failure_code: ValidationFailureCode | null
  failed_at: Date | null
  /** Null if it is not tried again by itself. */
  next_validation_at: Date | null
}

/** A call that has ended. Partitions of a UTC day each, see `call-log-partitions.ts`. */
interface CallLogTable {
  id: string
  /** When it ended, to the millisecond. */
  at: Date
  request_id: string | null
  account_id: string
  /** Id of the API key, or of the connection of an application; null for a session. */
  key_id: string | null
  status: number
  attempts: number | null
  /** The wait that admission forecast, or that a refusal quoted. */
  quoted_ms: number | null
  admission_ms: number | null
  queue_ms: number | null
  permit_ms: number | null
  upstream_ms: number | null
  total_ms: number
  /** Length of the answer's body. */
  bytes: number | null
  mode: Environment
  via: CallVia
  /** `-` if the call named no API of the catalog. */
  slug: string
  endpoint: string | null
  /** Null for a success. */
  code: ErrorCode | null
  cause: string | null
  cache: 'hit' | 'stale' | 'miss' | null
  /** The tool of a call that came by MCP. */
  tool: string | null
}

/** How a call reached the gateway. */
export type CallVia = 'call' | 'batch' | 'mcp'

export type CallRow = Selectable<CallLogTable>

/** Applications that registered themselves. */
interface OAuthClientsTable {
  id: string
  secret_id: string
  /** Metadata, with the client's secret if it has a secret. */
  sealed: Buffer
  created_at: Timestamp
  last_used_at: Timestamp
}

/** Codes, tokens, grants and sign-ins under way; ids are kept as hashes. */
interface OAuthArtifactsTable {
  kind: string
  id_hash: Buffer
  uid_hash: Buffer | null
  connection_id: string | null
  secret_id: string
  sealed: Buffer
  consumed_at: Date | null
  /**
   * Hash of the refresh token that a refresh token came from; null for the first token of a
   * connection.
   */
  parent_hash: Buffer | null
  /** When a refresh token was superseded: from then on its use is a replay. */
  superseded_at: Date | null
  expires_at: Date
}

/** An application that an account let in, and what it may do. */
interface ConnectionsTable {
  id: string
  user_id: string
  client_id: string
  client_name: string
  /** Host that the code was sent to. */
  redirect_host: string
  /** Resource that its tokens are good for. */
  resource: string
  /** Slugs it may call; null: all. */
  apis: string[] | null
  /** Networks (CIDR) from which it may be used; null: everywhere. */
  addresses: string[] | null
  /** Calls a month it may make; null: as many as the plan allows. */
  per_month: number | null
  /** Calls in any minute, and calls at once; null: as many as the plan allows. */
  per_minute: number | null
  in_flight: number | null
  /** Whether it may call endpoints that change something. */
  may_write: Generated<boolean>
  created_at: Timestamp
  last_used_at: Date | null
  revoked_at: Date | null
}

export type Connection = Selectable<ConnectionsTable>
export type NewConnection = Insertable<ConnectionsTable>
export type User = Selectable<UsersTable>
export type ApiKey = Selectable<ApiKeysTable>
export type NewApiKey = Insertable<ApiKeysTable>
export type Team = Selectable<TeamsTable>
export type ProviderKey = Selectable<ProviderKeysTable>
export type UpstreamSettingsRow = Selectable<UpstreamSettingsTable>
export type AuditEntry = Selectable<AuditLogTable>
