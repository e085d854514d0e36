/**
 * Names of the records for which stored secrets are sealed (`seal`). A name says whose the secret
 * is, so that a secret copied into another row cannot be opened.
 */

/** An operator's key for an upstream. */
export function operatorKeyRecord(slug: string): string {
  return `operator-key|${slug}`
}

/** @param ownerId the account or team that owns the provider key */
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
