/**
 * The records that stored secrets are sealed for (`seal`): whose a secret is, so that it cannot be
 * opened when somebody copies it into another row.
 */

/** An operator's key for an upstream. */
export function operatorKeyRecord(slug: string): string {
  return `operator-key|${slug}`
}

/** @param ownerId of the account or team that a provider key belongs to */
export function providerKeyRecord(ownerId: string, slug: string): string {
  return `provider-key|${ownerId}|${slug}`
}

/** An application that registered itself. */
export function clientRecord(id: string): string {
  return `oauth client ${id}`
}

/** A code, token or grant, which is stored under the hash of its id. */
export function artifactRecord(kind: string, idHash: Buffer): string {
  return `oauth ${kind} ${idHash.toString('base64url')}`
}
