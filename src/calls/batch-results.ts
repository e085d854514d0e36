import type { BatchUnit } from '../admission/admit-batch.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import type { GatewayError } from '../errors.ts'
import type { BatchAnswer } from '../http/answer/batch-answer.ts'
import { sourceLink } from '../http/answer/call-answer.ts'
import { publicError, retryAfterSeconds } from '../http/answer/public-error.ts'
import type { Holding } from '../http/server/holding.ts'
import { cacheResult } from '../telemetry/ended-call.ts'
import { errorOf } from './end-call.ts'
import type { FinalResult } from './pending-call.ts'

/** How the body of each success begins (`dataOutcome`). */
const SUCCESS_LENGTH = Buffer.byteLength('{"status":"success",')

export interface BatchResultsDeps {
  catalog: Catalog
  config: Pick<Config, 'http'>
}

/** Writes the results of a batch's calls, and counts them. */
export class BatchResults {
  readonly #deps: BatchResultsDeps
  readonly #items: { ref?: string }[]
  readonly #answer: BatchAnswer
  readonly #holding: Holding | undefined
  readonly #count = { ok: 0, failed: 0, deduplicated: 0 }

  constructor(
    deps: BatchResultsDeps,
    { items, answer, holding }: { items: { ref?: string }[]; answer: BatchAnswer; holding: Holding | undefined },
  ) {
    this.#deps = deps
    this.#items = items
    this.#answer = answer
    this.#holding = holding
    // If the caller does not read, all results may wait here.
    holding?.follow(() => answer.bytes)
  }

  /** Writes the result of a call that failed or was not made. */
  refuse(index: number, error: GatewayError, id?: string): void {
    this.#count.failed += 1
    const retryAfter = retryAfterSeconds(error)
    const result = {
      ...this.#nameOf(index),
      id,
      status: error.status,
      error: publicError(error, this.#deps.config.http.baseUrl),
      retryAfter,
    }
    this.#write(index, [Buffer.from(JSON.stringify(result))])
  }

  /** Writes the results of equal calls, which ended together. */
  write({ indexes, job }: BatchUnit, end: FinalResult): void {
    this.#count.deduplicated += indexes.length - 1
    const error = errorOf(end)
    if (error) for (const index of indexes) this.refuse(index, error, job.id)
    if (error || end.kind === 'failed') return
    const { head, body } = end.reply
    const api = this.#deps.catalog.get(job.slug)
    // What follows the status is passed on without parsing.
    const members = body.subarray(SUCCESS_LENGTH)
    for (const index of indexes) {
      this.#count.ok += 1
      const { cacheStatus, recordedFor, example } = head
      const about = {
        ...this.#nameOf(index),
        id: job.id,
        status: 200,
        cache: cacheStatus === undefined ? undefined : cacheResult(cacheStatus),
        recordedFor,
        example,
        link: api?.fallback && sourceLink(api, head),
      }
      this.#write(index, [Buffer.from(`${JSON.stringify(about).slice(0, -1)},`), members])
    }
  }

  /** Writes the totals of the batch, and ends the answer. */
  end({ charged, mode }: { charged: number; mode: string }): void {
    const { ok, failed, deduplicated } = this.#count
    this.#answer.end({ done: true, ok, failed, charged, deduplicated, mode })
  }

  /** The index of a call, and the caller's own name for it, which not every call has. */
  #nameOf(index: number): { index: number; ref: string | undefined } {
    return { index, ref: this.#items[index]?.ref }
  }

  #write(index: number, line: Buffer[]): void {
    this.#answer.write(index, line)
    this.#holding?.measure()
  }
}
