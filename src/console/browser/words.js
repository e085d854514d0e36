// The browser loads the same file under this name.
export * from '../../fleet/words.js'
