// Package rootmodule is what Holdfast writes into root modules besides the code of templates:
// the names of its files, and how they say where the values of secret variables are.
//
// templates and its rooms write them; runner/attempt, runner/secrets and their neighbours read
// them, long after that and elsewhere: what is in a bundle stays as it is. It is pure,
// and knows nobody. It never has the value of a secret.
package rootmodule
