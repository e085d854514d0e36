/** Values of one file. If an alias repeats a value, the value counts again. */
export const VALUES_MAX = 250_000

/** Values inside values. */
export const DEPTH_MAX = 64

/** A value takes about six tokens: its name, a colon, blanks, itself and the end of its line. */
const TOKENS_MAX = 6 * VALUES_MAX

/** Anchors and tags. */
const MARKS_MAX = 10_000

/**
 * Looks at the tokens of a YAML text before its parser does, whose time grows with the square of
 * the depth, and which goes on after an error to find further errors. Each bound fails closed.
 */
export class TokenGuard {
  #tokens = 0
  #marks = 0
  #depth = 0
  #documents = 0
  /** Indicators of block style since the line began: each opens a level. */
  #indicators = 0
  /** Values, or commas, with nothing between them that separates them. */
  #unseparated = 0

  /** Why the text is not read any further; undefined if it is. */
  problemAfter(lexeme: string): string | undefined {
    this.#tokens += 1
    if (this.#tokens > TOKENS_MAX) return `The file has more than ${VALUES_MAX} values.`
    switch (lexeme) {
      case '[':
      case '{':
        this.#depth += 1
        this.#unseparated = 0
        break
      case ']':
      case '}':
        this.#depth -= 1
        if (this.#depth < 0) return NO_YAML
        break
      case '-':
      case '?':
      case ':':
        if (this.#depth === 0) this.#indicators += 1
        this.#unseparated = 0
        break
      case ',':
        this.#unseparated = this.#unseparated < 0 ? this.#unseparated - 1 : -1
        break
      case '\n':
      case '\r\n':
        this.#indicators = 0
        break
      case '---':
        this.#documents += 1
        if (this.#documents > 1) return SEVERAL_DOCUMENTS
        break
      default:
        return this.#problemOfValue(lexeme)
    }
    if (this.#depth > DEPTH_MAX || this.#indicators > DEPTH_MAX) {
      return `Values are nested deeper than ${DEPTH_MAX} levels.`
    }
    return this.#unseparated < -1 ? NO_YAML : undefined
  }

  #problemOfValue(lexeme: string): string | undefined {
    const first = lexeme.charCodeAt(0)
    if (lexeme.includes('\n')) this.#indicators = 0
    if (VALUE_BEGINS.has(first)) {
      this.#unseparated = this.#unseparated < 0 ? 1 : this.#unseparated + 1
      return this.#unseparated > UNSEPARATED_MAX ? NO_YAML : undefined
    }
    if (first !== AMPERSAND && first !== EXCLAMATION) return undefined
    this.#marks += 1
    return this.#marks > MARKS_MAX ? `The file has more than ${MARKS_MAX} anchors and tags.` : undefined
  }
}

/** The lexer's mark of a scalar without quotes, both quotes, and the asterisk of an alias. */
const VALUE_BEGINS = new Set([0x1f, 0x22, 0x27, 0x2a])
const AMPERSAND = 0x26
const EXCLAMATION = 0x21

/**
 * A value ends with a line, after which the name of the next member follows: more than these in a
 * row are no YAML.
 */
const UNSEPARATED_MAX = 50

/** Why a file with more than one document is not read. */
export const SEVERAL_DOCUMENTS = 'The file has several documents; it may have one.'

const NO_YAML = 'The file is neither JSON nor YAML 1.2: a separator is missing, or one is too many.'
