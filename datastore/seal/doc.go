// Package seal encrypts what is kept at rest: the keys (Keyring, and the files they
// are read from), columns (Seal, SealJSON) and streams (NewWriter, NewReader).
//
// The datastore calls it, and whoever starts a server loads the keys. Each
// ciphertext is bound to its purpose and the name of the thing, so that it decrypts
// nowhere else. It knows neither SQL nor blobs, keeps no plaintext, and prints no key.
package seal
