/** The server serves the module of the package under this name. */
export { Idiomorph } from 'idiomorph'
