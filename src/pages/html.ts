import { escapeHtml } from '../browser/html.js'

/** Text that is already HTML. Only `html` and `trusted` make it. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

type Content = string | number | boolean | null | undefined | Html | readonly Content[]

/**
 * Writes HTML. Every value is escaped unless it is Html. False, null and undefined write nothing.
 */
export function html(fixed: TemplateStringsArray, ...values: Content[]): Html {
  return new Html(fixed.map((part, index) => (index === 0 ? part : render(values[index - 1]) + part)).join(''))
}

/** Marks HTML that we wrote ourselves, such as an icon. Never pass text of anybody else. */
export function trusted(text: string): Html {
  return new Html(text)
}

function render(value: Content): string {
  if (value === undefined || value === null || value === false || value === true) return ''
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(render).join('')
  return escapeHtml(String(value))
}
