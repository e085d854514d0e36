/** Most values of one file. If an alias repeats a value, the value counts again. */
export const VALUES_MAX = 250_000

/** Deepest nesting of values. */
export const DEPTH_MAX = 64

/**
 * Most tokens. A value takes about six: its name, a colon, blanks, the value and the end of its
 * line.
 */
const TOKENS_MAX = 6 * VALUES_MAX

/** Most anchors and tags. */
const MARKS_MAX = 10_000

/**
 * Checks the tokens of a YAML text before the parser reads them. The parser's time grows with the
 * square of the depth, and after an error the parser goes on to find more errors. Each limit fails
 * closed.
 */
export class TokenGuard {
  #tokens = 0
  #marks = 0
  #depth = 0
  #documents = 0
  /** Block indicators (`-`, `?`, `:`) on this line so far. Each opens a level. */
  #indicators = 0
  /** Values or commas in a row without a separator between them. */
  #unseparated = 0

  /** Why reading stops after this token; undefined if it goes on. */
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

/**
 * First characters of tokens that begin a value: the lexer's mark of a plain scalar, both quotes,
 * and the asterisk of an alias.
 */
const VALUE_BEGINS = new Set([0x1f, 0x22, 0x27, 0x2a])
const AMPERSAND = 0x26
const EXCLAMATION = 0x21

/**
 * Most values in a row without a separator. In YAML a value ends with its line, and the name of the
 * next member follows.
 */
const UNSEPARATED_MAX = 50

/** The message for a file with more than one document. */
export const SEVERAL_DOCUMENTS = 'The file has several YAML documents. Keep one document in each file.'

const NO_YAML = 'The file is neither JSON nor YAML 1.2: a comma, colon or line break is missing or superfluous.'
