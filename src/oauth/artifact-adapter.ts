import { hash } from 'node:crypto'
import type { Adapter, AdapterPayload } from 'oidc-provider'
import { errors } from 'oidc-provider'
import { artifactRecord, clientRecord } from '../accounts/sealed-records.ts'
import { open, seal } from '../accounts/secret-box.ts'
import type { Config } from '../config.ts'
import { findConnectionOwner, revokeConnection } from '../db/connections.ts'
import type { Db } from '../db/database.ts'
import {
  consumeArtifact,
  deleteArtifact,
  deleteClient,
  findArtifact,
  findArtifactOwner,
  findClient,
  insertClient,
  upsertArtifact,
} from '../db/oauth-artifacts.ts'
import { isWellFormed } from '../http/request/well-formed.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { resourceOf } from './resources.ts'
import { currentTokenUse, noteTokenUse } from './token-use.ts'

export interface ArtifactDeps {
  config: Config
  db: Db
  redis: RedisConnection
  log: Log
}

/** How long an artifact without an expiry is kept, seconds. */
const DEFAULT_SECONDS = 3_600

/**
 * Tokens and ids of artifacts are stored as hashes, so that whoever reads the table cannot use
 * them.
 */
export function artifactHash(id: string): Buffer {
  return hash('sha256', id, 'buffer')
}

/**
 * The store in which the authorization server keeps codes, tokens and grants, sealed in Postgres.
 */
export class ArtifactAdapter implements Adapter {
  readonly #kind: string
  readonly #deps: ArtifactDeps

  constructor(kind: string, deps: ArtifactDeps) {
    this.#kind = kind
    this.#deps = deps
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn = DEFAULT_SECONDS): Promise<void> {
    const { config, db } = this.#deps
    const idHash = artifactHash(id)
    const { secretId, bytes } = seal(
      config.secrets.encryption,
      artifactRecord(this.#kind, idHash),
      JSON.stringify(payload),
    )
    const artifact = {
      kind: this.#kind,
      idHash,
      uidHash: payload.uid === undefined ? null : artifactHash(payload.uid),
      // A grant has the id of its connection. Codes and tokens name the grant from which they come.
      connectionId: this.#kind === 'Grant' ? id : (payload.grantId ?? null),
      secretId,
      sealed: bytes,
      seconds: expiresIn,
    }
    await upsertArtifact(db, artifact, currentTokenUse())
  }

  find(id: string): Promise<AdapterPayload | undefined> {
    return this.#find({ idHash: artifactHash(id) })
  }

  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#find({ uidHash: artifactHash(uid) })
  }

  /**
   * For sign-ins with a code that the user types in (device flow), which this server does not
   * offer.
   */
  async findByUserCode(): Promise<undefined> {
    return undefined
  }

  /**
   * Marks a code or refresh token as used. A refresh token counts as used only when the new access
   * token is stored, as the last step. Until then the client has received nothing for it.
   *
   * @throws InvalidGrant if another request used it first: a code is valid once, over all nodes
   */
  async consume(id: string): Promise<void> {
    const idHash = artifactHash(id)
    if (this.#kind === 'RefreshToken') return noteTokenUse(idHash)
    if (!(await consumeArtifact(this.#deps.db, this.#kind, idHash)))
      throw new errors.InvalidGrant('the code or token was used already')
  }

  async destroy(id: string): Promise<void> {
    const { db } = this.#deps
    const idHash = artifactHash(id)
    // Nodes cache whom a token stands for until a change is announced.
    const userId = this.#kind === 'AccessToken' ? await findArtifactOwner(db, this.#kind, idHash) : undefined
    const accountIds = userId === undefined ? [] : [userId]
    await withAnnouncement(this.#deps, accountIds, () => deleteArtifact(db, this.#kind, idHash))
    if (this.#kind === 'Grant') await this.revokeByGrantId(id)
  }

  /**
   * Ends the connection. Reasons: a code was used twice, a refresh token was replayed, or the
   * application asked for it.
   */
  async revokeByGrantId(grantId: string): Promise<void> {
    const { db } = this.#deps
    const userId = await findConnectionOwner(db, grantId)
    if (userId !== undefined) await withAnnouncement(this.#deps, [userId], () => revokeConnection(db, grantId, userId))
  }

  async #find(by: { idHash: Buffer } | { uidHash: Buffer }): Promise<AdapterPayload | undefined> {
    const { db } = this.#deps
    const found = await findArtifact(db, this.#kind, by)
    if (!found) return undefined
    const { idHash, secretId, sealed, consumedAt } = found
    const payload = openStored(this.#deps, { record: artifactRecord(this.#kind, idHash), secretId, sealed })
    if (!payload) return undefined
    const spelled = withOneSpelling(payload, this.#deps.config.http.baseUrl)
    return consumedAt ? { ...spelled, consumed: Math.floor(consumedAt.getTime() / 1_000) } : spelled
  }
}

/**
 * An earlier version stored sign-ins with the resource as the application spelled it. Requests name
 * the resource in one spelling.
 * @until 0.4.0
 */
function withOneSpelling(payload: AdapterPayload, baseUrl: string): AdapterPayload {
  const spell = (resource: string): string => resourceOf(resource, baseUrl) ?? resource
  const { resource, resources } = payload as { resource?: unknown; resources?: Record<string, string> }
  const spelled = { ...payload }
  if (typeof resource === 'string') spelled.resource = spell(resource)
  if (resources) {
    spelled.resources = Object.fromEntries(Object.entries(resources).map(([name, scope]) => [spell(name), scope]))
  }
  return spelled
}

/**
 * Opens a stored record. If the secret that sealed it was removed, the record counts as absent, and
 * the application registers or signs in again.
 *
 * @throws Error if the bytes do not belong to this record
 */
export function openStored(
  { config, log }: ArtifactDeps,
  { record, secretId, sealed }: { record: string; secretId: string; sealed: Buffer },
): AdapterPayload | undefined {
  const { encryption } = config.secrets
  if (!encryption.some(({ id }) => id === secretId)) {
    log.warn({ secretId }, 'failed to open an OAuth record: ENCRYPTION_KEY does not contain the secret that sealed it')
    return undefined
  }
  return JSON.parse(open(encryption, record, { secretId, bytes: sealed }))
}

/**
 * The store of registered applications. Records are sealed too, because some hold a client secret.
 */
export class ClientAdapter extends ArtifactAdapter {
  readonly #clients: ArtifactDeps

  constructor(deps: ArtifactDeps) {
    super('Client', deps)
    this.#clients = deps
  }

  override async upsert(id: string, payload: AdapterPayload): Promise<void> {
    const { config, db } = this.#clients
    const { secretId, bytes } = seal(config.secrets.encryption, clientRecord(id), JSON.stringify(payload))
    await insertClient(db, { id, secretId, sealed: bytes })
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { db } = this.#clients
    // Postgres accepts no NUL, so an id with a NUL belongs to no application.
    if (!isWellFormed(id)) return undefined
    const client = await findClient(db, id)
    if (!client) return undefined
    const { secretId, sealed } = client
    return openStored(this.#clients, { record: clientRecord(id), secretId, sealed })
  }

  override async destroy(id: string): Promise<void> {
    await deleteClient(this.#clients.db, id)
  }
}
