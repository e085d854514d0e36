/**
 * Names of countries as people write them, for a source that has only the long names of ISO 3166.
 */

/**
 * Common names of countries by alpha-2 code, in the form of `comparableName`. The table has only
 * names that the long ISO name does not contain: a search finds "Iran" in "Iran (Islamic Republic
 * of)".
 */
// biome-ignore format: a list to look through
const namesByCode: Record<string, string[]> = {
  AE: ['emirates', 'uae'],
  AG: ['antigua and barb'],
  AR: ['argentine republic', 'argentine'],
  AX: ['aland', 'aland islands', 'aaland', 'aaland islands'],
  BA: ['bih', 'bosnia herzegovina'],
  BL: ['saint barthelemy', 'barthelemy', 'saint barts'],
  BN: ['brunei', 'brunei darussalam', 'nation of brunei', 'nation of brunei abode of peace'],
  BQ: ['caribbean netherlands', 'bes islands', 'bonaire saint eustatius and saba', 'bonaire sint eustatius and saba', 'sint eustatius', 'saint eustatius'],
  CC: ['cocos islands', 'keeling islands'],
  CD: ['dr congo', 'dr of congo', 'drc', 'democratic republic of congo', 'democratic congo', 'congo kinshasa', 'congo dr', 'congo drc', 'congo democratic republic', 'zaire', 'democratic republic congo'],
  CF: ['car'],
  CG: ['republic of congo', 'congo brazzaville', 'congo republic'],
  CH: ['swiss confederation'],
  CI: ['cote divoire', 'cote d ivoire', 'ivory coast', 'republic of cote divoire'],
  CN: ['peoples republic of china', 'prc', 'mainland china', 'pr china', 'pr of china', 'china pr'],
  CV: ['cape verde', 'cabo verde', 'cape verde islands'],
  CW: ['curacao'],
  CZ: ['czechia', 'czech republic'],
  EH: ['sahrawi arab democratic republic', 'sahrawi republic'],
  ER: ['state of eritrea'],
  FK: ['malvinas', 'falklands', 'falkland islands islas malvinas'],
  FM: ['federated states of micronesia'],
  FO: ['faeroe islands', 'faeroes', 'faroes'],
  FR: ['french republic'],
  GA: ['gabonese republic'],
  GB: ['england', 'gb', 'north ireland', 'scotland', 'uk', 'united kingdom uk', 'wales'],
  GE: ['georgia country'],
  GF: ['french guyana'],
  GR: ['hellenic republic'],
  GS: ['south geo and islands', 'south sandwich islands', 'south georgia and south sandwich islands'],
  GW: ['guinea bissau'],
  HK: ['hong kong sar', 'hong kong sar china', 'hong kong china', 'hongkong', 'hong kong special administrative region of peoples republic of china'],
  HM: ['heard island', 'mcdonald islands', 'heard and mcdonald islands', 'heard island and mcdonald islands'],
  IE: ['republic of ireland', 'ireland republic', 'irish republic', 'eire'],
  IL: ['state of israel'],
  IR: ['islamic republic of iran', 'persia', 'ir iran', 'ir of iran'],
  IT: ['italian republic'],
  KG: ['kyrgyz republic', 'kirghizia', 'kirghizstan'],
  KN: ['saint christopher and nevis', 'saint kitts', 'saint kitts nevis'],
  KP: ['democratic peoples republic of korea', 'dprk', 'korea democratic peoples republic of', 'korea north', 'north korea', 'korea dpr', 'dpr korea', 'dpr of korea'],
  KR: ['korea republic of', 'korea south', 'republic of korea', 'rok', 'south korea', 'korea republic'],
  KW: ['state of kuwait'],
  LA: ['lao pdr', 'laos', 'lao peoples democratic republic'],
  LB: ['lebanese republic'],
  LY: ['state of libya', 'libyan arab jamahiriya'],
  MF: ['saint martin'],
  MK: ['fyrom', 'macedonia', 'north macedonia', 'republic of macedonia'],
  MM: ['burma', 'myanmar', 'myanmar burma'],
  MO: ['macao', 'macao sar', 'macao sar china', 'macau', 'macau sar', 'macao special administrative region of peoples republic of china', 'macau special administrative region of peoples republic of china'],
  MP: ['marianas', 'northern marianas', 'north mariana islands'],
  MX: ['united mexican states'],
  NL: ['holland', 'netherlands holland'],
  NZ: ['nz', 'aotearoa new zealand', 'new zealand aotearoa'],
  PF: ['tahiti'],
  PG: ['png'],
  PN: ['pitcairn group of islands', 'pitcairn islands', 'pitcairn henderson ducie and oeno islands'],
  PS: ['gaza', 'west bank', 'west bank and gaza', 'palestinian authority', 'palestinian territories', 'palestinian territory', 'occupied palestinian territory', 'state of palestine', 'gaza strip'],
  PT: ['portuguese republic'],
  QA: ['state of qatar'],
  RE: ['la reunion', 'reunion', 'reunion island'],
  SA: ['ksa'],
  SH: ['ascension island', 'saint helena ascension and tristan da cunha'],
  SJ: ['svalbard og jan mayen', 'svalbard and jan mayen islands'],
  SK: ['slovak republic'],
  ST: ['sao tome e principe', 'sao tome principe', 'sao tome and principe'],
  SX: ['saint maarten'],
  SZ: ['eswatini', 'swaziland'],
  TF: ['french south antarctic lands', 'french southern and antarctic lands', 'french southern lands', 'french southern territories'],
  TG: ['togolese republic'],
  TL: ['east timor', 'timor leste'],
  TN: ['tunisian republic'],
  TR: ['turkey', 'turkiye'],
  TT: ['trinidad', 'trinidad tobago'],
  TW: ['republic of china', 'republic of china taiwan', 'chinese taipei', 'taiwan china', 'taiwan roc', 'taiwan province of china'],
  TZ: ['united republic of tanzania'],
  UM: ['us minor outlying islands', 'us outlying islands'],
  US: ['us', 'usa', 'united states us', 'united states usa'],
  VA: ['holy see', 'vatican', 'vatican city', 'vatican city state'],
  VC: ['saint vincent and grenadines', 'saint vincent grenadines'],
  VE: ['bolivarian republic of venezuela', 'rb venezuela'],
  VG: ['british virgin islands', 'bvi', 'virgin islands british'],
  VI: ['united states virgin islands', 'american virgin islands', 'us virgin islands', 'usvi', 'virgin islands of united states', 'virgin islands us'],
  VN: ['viet nam', 'vietnam'],
  WF: ['wallis and futuna islands', 'wallis futuna'],
  WS: ['western samoa', 'independent state of samoa'],
  XK: ['kosovo'],
  ZA: ['rsa'],
}

const codeByName = new Map(Object.entries(namesByCode).flatMap(([code, names]) => names.map((name) => [name, code])))

/** Words that atlases and tables abbreviate, in the form of `comparableName`. */
const wordByAbbreviation = new Map([
  ['br', 'british'],
  ['dem', 'democratic'],
  ['eq', 'equatorial'],
  ['fed', 'federated'],
  ['fr', 'french'],
  ['herz', 'herzegovina'],
  ['is', 'islands'],
  ['isl', 'islands'],
  ['n', 'north'],
  ['rep', 'republic'],
  ['s', 'south'],
  ['st', 'saint'],
  ['ste', 'saint'],
  ['sts', 'states'],
  ['ter', 'territory'],
  ['terr', 'territories'],
  ['w', 'western'],
])

/**
 * Words that occur in the names of several countries and alone name none: "American" does not mean
 * American Samoa.
 */
// biome-ignore format: a list to look through
const NAMES_NO_COUNTRY = new Set([
  'african', 'american', 'and', 'arab', 'british', 'central', 'da', 'democratic', 'dominican', 'dutch', 'eastern', 'equatorial', 'federated', 'federation', 'french', 'great', 'indian',
  'island', 'islands', 'islamic', 'isle', 'kingdom', 'minor', 'new', 'north', 'northern', 'ocean', 'of', 'outlying', 'part', 'peoples', 'republic', 'saint',
  'south', 'southern', 'state', 'states', 'territories', 'territory', 'united', 'western',
])

/** Names of countries that consist of only such words. */
const NAMES_OF_SUCH_WORDS = new Set(['united kingdom', 'united states'])

/**
 * "Kingdom of", "Federal Democratic Republic of the": what an official name puts before the usual
 * one.
 */
const FORMAL = new RegExp(
  `^(?!united kingdom )(?:[\\p{L}'’-]+ ){0,3}(?:${[
    'republic|kingdom|commonwealth|principality|sultanate|duchy|union|federation|bailiwick|collectivity|department',
    'territory|country|plurinational state|independent state',
  ].join('|')}) of (?:the )?(?=\\p{L})`,
  'iu',
)

/**
 * The alpha-2 code of a country if a text is a common name that its long ISO name does not contain;
 * undefined for all other texts.
 */
export function codeOfCommonName(name: string): string | undefined {
  return codeByName.get(comparableName(name))
}

/**
 * The form in which names are compared: lower case, without accents, articles and punctuation, with
 * abbreviations written out. "St. Vincent & the Grenadines" and "Saint Vincent and Grenadines"
 * become equal.
 */
export function comparableName(name: string): string {
  const words = withoutAccents(name)
    .toLowerCase()
    .replace(/['’‘ʼ`.]/g, '')
    .replace(/&/g, ' and ')
    .split(/[^\p{L}\p{N}]+/u)
  return words
    .filter((word) => word !== '' && word !== 'the')
    .map((word) => wordByAbbreviation.get(word) ?? word)
    .join(' ')
}

/** Whether every word of a text occurs in the names of many countries, so that it names none. */
export function namesNoCountry(name: string): boolean {
  const comparable = comparableName(name)
  if (NAMES_OF_SUCH_WORDS.has(comparable)) return false
  return comparable.split(' ').every((word) => word === '' || NAMES_NO_COUNTRY.has(word))
}

/**
 * The part of a name with which a search for "name contains" finds its country. It has no accents,
 * no leading article and no formal words ("Republic of"). Abbreviations are written out, and the
 * words are in spoken order.
 */
export function searchableName(name: string): string {
  const plain = withoutAccents(name)
    .replace(/\s*&\s*/g, ' and ')
    .replace(SPACED_INITIALS, (initials) => initials.replace(/\s+/g, ''))
    .replace(/(?<![\p{L}.])([nsw])\.(?=\p{L}{3})/giu, '$1. ')
    .replace(LISTED, '')
    .replace(/[[{]([^[\]{}]*)[\]}]/g, '($1)')
    .replace(LEADING_ARTICLE, '')
  const withoutBracket = plain.replace(/\s*\([^()]*\)$/, '')
  const ordered = inSpokenOrder(plain).replace(LEADING_ARTICLE, '')
  const common = [plain, withoutBracket, ordered].find((written) => codeOfCommonName(written) !== undefined)
  if (common !== undefined) return common
  return ordered
    .replace(HYPHEN, ' ')
    .replace(
      /(?<![\p{L}.])(\p{L}+)\.(?!\p{L})/gu,
      (written, word) => wordByAbbreviation.get(word.toLowerCase()) ?? written,
    )
    .replace(/(?<!\p{L})st(?:\.\s*|\s+)(?=\p{L})/giu, 'saint ')
    .replace(FORMAL, '')
    .replace(FORMAL, '')
}

const LEADING_ARTICLE = /^(?:the\s+)+(?=\S)/i

/**
 * A hyphen in place of a blank, as in "Sri-Lanka". Only Guinea-Bissau and Timor-Leste have a hyphen
 * in the source.
 */
const HYPHEN = /(?<=\p{L})(?<!^(?:guinea|timor))\p{Pd}(?=\p{L})/giu

/** "U. S. A." is U.S.A. */
const SPACED_INITIALS = /(?<!\p{L})\p{L}\.(?:\s+\p{L}\.?(?!\p{L}))+/gu

/**
 * What lists add after a name: the article of ISO 3166 ("Gambia (the)") or the mark of a footnote
 * ("Niger [1]"). Other words in brackets distinguish countries of the same name: "Congo [DRC]".
 */
const LISTED = /\s*(?:\(the\)(?=$|\s*[[*])|(?<=.)\[(?:note )?(?:\d{1,3}|[a-z])\](?=$|\*)|(?<=.)\*+$)/giu

/**
 * Moves the part after a comma to the front, because tables move this part behind the name for
 * sorting: "Gambia, The" becomes The Gambia, "Yemen, Rep." becomes Rep. of Yemen. ISO 3166 writes
 * the part in brackets: "Moldova (the Republic of)".
 */
function inSpokenOrder(name: string): string {
  const [, inBrackets = '', before = ''] = /^([^,()]+?)\s*\(([^,()]+ of(?: the)?)\)$/i.exec(name) ?? []
  if (before !== '') return `${before} ${inBrackets}`
  const [, last = '', first = ''] = /^([^,()]+),\s*([^,()]+)$/.exec(name) ?? []
  if (first === '' || /\sand\s/i.test(first)) return name
  return `${first} ${/(?:rep|republic|sts|states)\.?$/i.test(first) ? 'of ' : ''}${last}`
}

/**
 * Removes accents, and replaces compatibility forms such as full-width letters and ligatures by
 * plain letters.
 */
function withoutAccents(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').normalize()
}
