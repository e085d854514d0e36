import type { ColumnType, Generated, Insertable, Selectable } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { ErrorCode } from '../errors.ts'
import type { AuditLogTable, CapGrantsTable, HealthChangesTable, UpstreamSettingsTable } from './operator-schema.ts'

/** The tables after all migrations. */
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
  /** Calls that were refused before they were queued. They are shown in usage but never charged. */
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
  /** Null if the person signs in only at the provider. */
  password_hash: string | null
  tier: Generated<Tier>
  disabled_at: Date | null
  terms_accepted_at: Date | null
  /** When the account proved that it receives mail at its address. */
  email_verified_at: Date | null
  /** When an operator allowed the account to make live calls. */
  approved_at: Date | null
  /** Whether the account wants notices by mail. */
  takes_notices: Generated<boolean>
  /** Network of the sign-up; null if the address was not public. */
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
  /** Whether the link went only to the account's address, so that using it proves the address. */
  proves_address: boolean
  expires_at: Date
}

/** The account to which the sign-in of a person at an OIDC provider leads. */
interface IdentitiesTable {
  issuer: string
  /** The provider's own id of the person, which it never gives to another person. */
  subject: string
  user_id: string
  created_at: Timestamp
}

export type Environment = 'live' | 'test'

interface ApiKeysTable {
  id: string
  /** The account against whose plan the key counts; for a team's key, the owner of the team. */
  user_id: string
  /** The team that owns the key; null if the account itself owns it. */
  team_id: string | null
  environment: Environment
  /** HMAC-SHA-256 of the key under the pepper. The key itself is not stored. */
  key_hash: Buffer
  last_four: string
  label: string | null
  created_at: Timestamp
  expires_at: Date | null
  last_used_at: Date | null
  /** The account that made the key; null if unknown, or if the account was deleted. */
  created_by: string | null
  /** Whether the key may call endpoints that change something. */
  may_write: Generated<boolean>
  revoked_at: Date | null
  /** Slugs of the APIs that the key may call; null: all. */
  apis: string[] | null
  /** Networks (CIDR) from which the key may be used; null: everywhere. */
  addresses: string[] | null
  /** Most calls in any minute, in a month, and at once; null: the limit of the plan. */
  per_minute: number | null
  per_month: number | null
  in_flight: number | null
  /**
   * Id under which calls are counted. A key inherits it from the key that it replaces; null: the
   * key's own id.
   */
  limits_id: string | null
  /** The key that replaced this key. From then on, this key expires at the end of the overlap. */
  replaced_by: string | null
}

/** Notices that were mailed, so that each is mailed only once. */
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

/** Calls that ended, by UTC day. */
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

/** Batches of the usage ledger that were written, so that each is counted only once. */
interface UsageBatchesTable {
  id: string
  written_at: Timestamp
}

export type ProviderKeyStatus = 'valid' | 'invalid' | 'unvalidated'

/**
 * KEY_NOT_CHECKABLE: the upstream answers a made-up key in the same way as this key, so nothing
 * shows whether the key is valid.
 */
export type ValidationFailureCode = ErrorCode | 'KEY_NOT_CHECKABLE'

/**
 * A caller's own key for an upstream. If it is replaced, the new key is a new row with a new id.
 */
interface ProviderKeysTable {
  id: string
  /** The owner: an account or a team. */
  user_id: string | null
  team_id: string | null
  slug: string
  /** The encryption key that sealed it. */
  secret_id: string
  sealed: Buffer
  /** Name of the cap bucket against which calls with this key count. */
  cap_scope: string
  masked: string
  status: Generated<ProviderKeyStatus>
  saved_at: Timestamp
  last_validated_at: Date | null
  /**
   * Why the last validation could not decide about the key; null if it decided, or no validation
   * has ended.
   */
  failure_code: ValidationFailureCode | null
  failed_at: Date | null
  /** When the key is validated again by itself; null: it is not. */
  next_validation_at: Date | null
}

/** Calls that have ended. Each UTC day has a partition, see `call-log-partitions.ts`. */
interface CallLogTable {
  id: string
  /** When it ended, to the millisecond. */
  at: Date
  request_id: string | null
  account_id: string
  /** Id of the API key or of an application's connection; null for a session. */
  key_id: string | null
  status: number
  attempts: number | null
  /** The wait that admission forecast, or that a refusal reported. */
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
  /** `-` if the call named no API, or an API that the catalog does not have. */
  slug: string
  endpoint: string | null
  /** Null for a success. */
  code: ErrorCode | null
  cause: string | null
  cache: 'hit' | 'stale' | 'miss' | null
  /** The MCP tool that made the call. */
  tool: string | null
}

/** How a call reached the gateway. */
export type CallVia = 'call' | 'batch' | 'mcp'

export type CallRow = Selectable<CallLogTable>

/** Applications that registered themselves. */
interface OAuthClientsTable {
  id: string
  secret_id: string
  /** The metadata, including the client's secret, if any. */
  sealed: Buffer
  created_at: Timestamp
  last_used_at: Timestamp
}

/** Codes, tokens, grants and unfinished sign-ins. Ids are stored as hashes. */
interface OAuthArtifactsTable {
  kind: string
  id_hash: Buffer
  uid_hash: Buffer | null
  connection_id: string | null
  secret_id: string
  sealed: Buffer
  consumed_at: Date | null
  /**
   * Hash of the refresh token from which this refresh token came; null for the first token of a
   * connection.
   */
  parent_hash: Buffer | null
  /** When a refresh token was superseded. A later use is a replay. */
  superseded_at: Date | null
  expires_at: Date
}

/** An application that an account has connected, and its restrictions. */
interface ConnectionsTable {
  id: string
  user_id: string
  client_id: string
  client_name: string
  /** The host to which the code was sent. */
  redirect_host: string
  /** The resource for which its tokens are valid. */
  resource: string
  /** Slugs of the APIs that the application may call; null: all. */
  apis: string[] | null
  /** Networks (CIDR) from which the connection may be used; null: everywhere. */
  addresses: string[] | null
  /** Most calls in a month; null: the limit of the plan. */
  per_month: number | null
  /** Most calls in any minute, and at once; null: the limits of the plan. */
  per_minute: number | null
  in_flight: number | null
  /** Whether the application may call endpoints that change something. */
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
