import { type CapScope, capPrefix } from '../src/caps/cap-script.ts'
import type { Api } from '../src/catalog.ts'
import { type DeskSources, PermitDesk } from './permit-desk.ts'

/** A worker's desks, one for each cap it uses. */
export class PermitDesks {
  readonly #sources: DeskSources
  readonly #desks = new Map<string, PermitDesk>()

  constructor(sources: DeskSources) {
    this.#sources = sources
  }

  of(api: Api, scope: CapScope): PermitDesk {
    const name = capPrefix(api.slug, scope)
    const known = this.#desks.get(name)
    if (known) {
      known.use(api)
      return known
    }
    const desk = new PermitDesk(this.#sources, api, scope)
    this.#desks.set(name, desk)
    return desk
  }

  /** Hears that a parked call may have its turn, which may be another worker's: `<cap's prefix> <member>`. */
  hear(message: string): void {
    const end = message.indexOf(' ')
    this.#desks.get(message.slice(0, end))?.turn(message.slice(end + 1))
  }
}
