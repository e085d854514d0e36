import { after, before, describe, it } from 'node:test'
import { ACCOUNT_STATEMENTS } from '../support/conformance/accounts.ts'
import { CALL_STATEMENTS } from '../support/conformance/calls.ts'
import { CATALOG_STATEMENTS } from '../support/conformance/catalog.ts'
import { DOCUMENT_STATEMENTS } from '../support/conformance/documents.ts'
import { OPERATOR_STATEMENTS } from '../support/conformance/operator.ts'
import { REFUSAL_STATEMENTS } from '../support/conformance/refusals.ts'
import { TEAM_STATEMENTS } from '../support/conformance/teams.ts'
import { UPSTREAM_STATEMENTS } from '../support/conformance/upstreams.ts'
import { startWorld, stopWorld, type World } from '../support/conformance/world.ts'

/**
 * The statements of the specification and the contract that show from outside, one row each,
 * against one running gateway. The rows follow those texts, not the code. If a text gets a new
 * sentence, this table gets a row.
 */
const STATEMENTS = {
  'accounts and keys': ACCOUNT_STATEMENTS,
  teams: TEAM_STATEMENTS,
  'the catalog and its endpoints': CATALOG_STATEMENTS,
  calls: CALL_STATEMENTS,
  'answers of upstreams': UPSTREAM_STATEMENTS,
  refusals: REFUSAL_STATEMENTS,
  'documents and protocols': DOCUMENT_STATEMENTS,
  'the operator API': OPERATOR_STATEMENTS,
}

describe('as specified', () => {
  let world: World
  before(async () => {
    world = await startWorld()
  })
  after(() => stopWorld(world))

  for (const [subject, statements] of Object.entries(STATEMENTS)) {
    describe(subject, () => {
      for (const { says, holds } of statements) it(says, async () => void (await holds(world)))
    })
  }
})
